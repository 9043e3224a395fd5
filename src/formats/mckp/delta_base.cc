// A delta finds its base by key alone, and keys do not lead out of a folder. So everything that
// would make a file that nobody can read is looked for before it is written.
#include "formats/mckp/delta_base.h"

#include <fmt/format.h>

#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/mckp/format.h"
#include "thalia/paths.h"
#include "thalia/storage.h"

namespace thalia::formats::mckp {
namespace {

MckpChain open_chain(const SinkBase& base, const SinkOptions& options) {
  // A difference to damaged bytes would be kept for good.
  MckpReadOptions read{.verify = true, .chain = base.chain};
  read.chain.read.work = {.threads = options.save.work.threads, .cancel = options.save.work.cancel};
  return MckpChain::open(base.path, read);
}

// From the folder where a reader begins to look; nullopt where the base lies elsewhere.
std::optional<std::string> key_from(const std::filesystem::path& folder,
                                    const std::filesystem::path& base) {
  const std::filesystem::path place = resolved_path(folder_of(base)) / base.filename();
  const std::filesystem::path from_there = place.lexically_relative(folder);
  if (from_there.empty() || *from_there.begin() == "..") return std::nullopt;
  try {
    check_storage_key(from_there.native());
  } catch (const UsageError&) {
    return std::nullopt;
  }
  return from_there.native();
}

[[noreturn]] void refuse_base(const std::string& base, std::string message, std::string value = {},
                              std::string bound = {}) {
  throw UsageError(
      ErrorCode::bad_argument, std::move(message),
      {.path = base, .field = "base", .value = std::move(value), .bound = std::move(bound)});
}

}  // namespace

DeltaBase::DeltaBase(const std::filesystem::path& output, const SinkBase& base,
                     const SinkOptions& options)
    : chain_(open_chain(base, options)) {
  const auto& hash = chain_.newest().header().content_hash;
  if (!hash) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "a file without a content hash can be no previous checkpoint",
                           {.path = base.path.string(), .field = "content_hash"});
  }
  previous_.content_hash = *hash;
  const auto key = key_from(resolved_path(output).parent_path(), base.path);
  found_ = key.has_value();
  previous_.key = key.value_or(base.path.filename().native());
  try {
    check_storage_key(previous_.key);
  } catch (const UsageError&) {
    refuse_base(base.path.string(), "a name that is no key", printable(previous_.key),
                "1 to 255 bytes that do not begin with '.'");
  }
  if (!is_valid_utf8(previous_.key))
    refuse_base(base.path.string(), "a name that is no key", printable(previous_.key), "UTF-8");
  check_chain(output);
}

void DeltaBase::check_chain(const std::filesystem::path& output) const {
  const std::string& base = chain_.newest().name();
  if (chain_.files().size() >= kMckpMaxChain) {
    refuse_base(base, "the chain becomes too long", std::to_string(chain_.files().size() + 1),
                fmt::format("at most {} files", kMckpMaxChain));
  }
  const std::filesystem::path place = resolved_path(output);
  for (const MckpFile& file : chain_.files()) {
    if (resolved_path(file.name()) == place)
      refuse_base(base, "the output is a file that the base needs, or the base itself");
    const auto& before = file.header().previous;
    if (before && before->key == previous_.key) {
      refuse_base(base, "a previous checkpoint of the base has its key", printable(previous_.key),
                  "another name, or another folder");
    }
  }
}

std::optional<Tensor> DeltaBase::find(const std::string& name, const TensorLayout& layout) const {
  const MckpTensor* const tensor = chain_.newest().find(name);
  if (tensor == nullptr || tensor->layout() != layout) return std::nullopt;
  return chain_.read(name);
}

}  // namespace thalia::formats::mckp
