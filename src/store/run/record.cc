#include "thalia/store/run.h"

#include <fmt/format.h>

#include <utility>

#include "store/run/fields.h"
#include "thalia/error.h"

namespace thalia {
namespace {

constexpr std::uint64_t kAnyVersion = ~std::uint64_t{0};

std::uint64_t version_of(const Value& metadata, const std::string& key) {
  store::Fields fields(metadata, "metadata.");
  const std::optional<std::uint64_t> version = fields.integer(key, 0, kAnyVersion);
  if (!version) fields.fail(key, "nothing", "the version of the record");
  return *version;
}

[[noreturn]] void fail_version(const RecordSchema& schema, std::uint64_t version,
                               std::string message) {
  throw UnsupportedError(ErrorCode::unsupported_version, std::move(message),
                         {.field = "metadata." + schema.version_key,
                          .value = std::to_string(version),
                          .bound = std::to_string(schema.version)});
}

}  // namespace

MigratedRecord migrate_record(Value metadata, const RecordSchema& schema) {
  MigratedRecord record{std::move(metadata)};
  record.from = version_of(record.metadata, schema.version_key);
  if (record.from > schema.version)
    fail_version(schema, record.from, "a record of a newer program");
  // If a record cannot be taken all the way, nothing in it is changed.
  for (std::uint64_t version = record.from; version < schema.version; ++version)
    if (!schema.migrations.contains(version))
      fail_version(schema, record.from,
                   fmt::format("no migration takes a record of version {}", version));
  for (std::uint64_t version = record.from; version < schema.version; ++version) {
    schema.migrations.at(version)(record.metadata);
    record.metadata[schema.version_key] = version + 1;
  }
  return record;
}

}  // namespace thalia
