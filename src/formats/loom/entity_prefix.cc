// Blobs may lie in any order, leave gaps, overlap, and be followed by other bytes, as the original
// reads them. Offsets are compared without a sum that could wrap.
#include "formats/loom/entity_prefix.h"

#include <fmt/format.h>

#include <cstring>

#include "base/fail.h"
#include "base/utf8.h"
#include "format/foreign_file.h"
#include "formats/loom/go_values.h"
#include "formats/loom/spec_reader.h"
#include "io/memory/allocation_limit.h"

namespace thalia::formats::loom {
namespace {

EntityPrefix checked_prefix(std::uint64_t file_bytes, const ReadExtent& read) {
  if (file_bytes < sizeof(EntityPrefix)) {
    fail_field(ErrorCode::truncated, "prelude", "magic", 0, fmt::format("{} bytes", file_bytes),
               std::to_string(sizeof(EntityPrefix)),
               file_bytes == 0 ? std::string(format::kEmptyFile) : "no room for the prelude");
  }
  EntityPrefix prefix;
  std::memcpy(&prefix, read(0, sizeof(prefix)).data(), sizeof(prefix));
  const std::string_view magic(prefix.magic, sizeof(prefix.magic));
  if (magic != kEntityMagic) {
    fail_field(ErrorCode::bad_magic, "prelude", "magic", 0, printable(magic),
               "ENTITY and two zero bytes");
  }
  if (prefix.version != kEntityVersion) {
    throw UnsupportedError(ErrorCode::unsupported_version, {},
                           {.section = "prelude",
                            .field = "version",
                            .offset = 8,
                            .value = std::to_string(prefix.version),
                            .bound = std::to_string(kEntityVersion)});
  }
  if (prefix.header_length > kMaxEntityHeader) {
    fail_field(ErrorCode::bad_value, "prelude", "header_length", 12,
               std::to_string(prefix.header_length), fmt::format("at most {}", kMaxEntityHeader));
  }
  const std::uint64_t room = file_bytes - sizeof(prefix);
  if (prefix.header_length > room) {
    fail_field(ErrorCode::truncated, "prelude", "header_length", 12,
               std::to_string(prefix.header_length), std::to_string(room));
  }
  return prefix;
}

void read_header(std::string_view text, const ReadLimits& limits, std::uint64_t stored_bytes,
                 Document& document) {
  SpecReader reader(SpecKind::header, limits, stored_bytes);
  json::walk_object(text, limits.max_json_depth, [&](std::string_view key, json::Value& value) {
    if (key == "format_version") {
      std::int64_t version = 0;  // the original looks at the other one only
      go_value(value, key, version);
    } else if (key == "network") {
      if (!go_object(value, key)) return;
      value.for_each_member([&](std::string_view name, json::Value& member) {
        reader.network_member(name, member, document.network);
      });
    } else if (key == "transformer") {
      document.network.transformer.reset();
      if (go_object(value, key)) reader.transformer(value, document.network.transformer.emplace());
    } else if (key == "blobs") {
      reader.blobs(value, document.blobs);
    } else {
      reader.pass_over(key);
    }
  });
  document.unknown = reader.unknown();
}

void check_places(const Document& document, std::uint64_t payload_bytes, const ReadLimits& limits,
                  std::uint64_t stored_bytes) {
  static_cast<void>(grid_cells(document.network, limits, stored_bytes));
  for (const LoomLayer& layer : document.network.layers)
    static_cast<void>(grid_place(document.network, layer));
  for (const BlobRecord& blob : document.blobs) {
    const auto refuse = [&](std::string_view field, std::uint64_t value, std::uint64_t bound) {
      throw FormatError(ErrorCode::out_of_bounds, {},
                        {.section = "header",
                         .field = std::string(field),
                         .tensor = printable(blob.path),
                         .value = std::to_string(value),
                         .bound = fmt::format("at most {}", bound)});
    };
    if (blob.offset > payload_bytes) refuse("offset", blob.offset, payload_bytes);
    if (blob.length > payload_bytes - blob.offset)
      refuse("length", blob.length, payload_bytes - blob.offset);
  }
}

}  // namespace

ParsedEntity parse_entity(std::uint64_t file_bytes, const ReadExtent& read,
                          const ReadLimits& limits) {
  io::check_file_bytes("prelude", file_bytes, limits);
  const EntityPrefix prefix = checked_prefix(file_bytes, read);
  ParsedEntity parsed;
  parsed.payload = sizeof(prefix) + prefix.header_length;
  try {
    io::check_json_length("header", prefix.header_length, limits, file_bytes);
    const ByteSpan text = read(sizeof(prefix), prefix.header_length);
    read_header({reinterpret_cast<const char*>(text.data()), text.size()}, limits, file_bytes,
                parsed.document);
    check_places(parsed.document, file_bytes - parsed.payload, limits, file_bytes);
  } catch (Error& error) {
    error.add_section("header");
    throw;
  }
  return parsed;
}

}  // namespace thalia::formats::loom
