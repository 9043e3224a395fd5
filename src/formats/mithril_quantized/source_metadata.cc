// Anybody who has the .thalia file may have edited its metadata: only what has exactly this form
// counts.
#include "formats/mithril_quantized/source_metadata.h"

#include "formats/mithril_quantized/parts.h"
#include "formats/source/metadata_member.h"

namespace thalia::formats::mithril_quantized {
namespace {

std::optional<std::uint64_t> number_in(const json::Value& value, std::uint64_t least,
                                       std::uint64_t greatest) {
  const auto number = value.unsigned_integer();
  return number && *number >= least && *number <= greatest ? number : std::nullopt;
}

bool read_member(std::string_view key, json::Value& value, MithrilSourceMetadata& source) {
  if (key == "method" && value.kind() == json::Kind::string) {
    const auto method = method_from_name(value.string());
    source.method = method.value_or(source.method);
    return method.has_value();
  }
  if (key == "original_dtype" && value.kind() == json::Kind::string) {
    const auto dtype = dtype_from_name(value.string());
    source.original_dtype = dtype.value_or(source.original_dtype);
    return dtype.has_value();
  }
  if (key == "group_size") {
    source.group_size = number_in(value, 0, UINT64_MAX);
    return source.group_size.has_value();
  }
  const auto level = number_in(value, 1, 22);
  source.level = static_cast<int>(level.value_or(3));
  return key == "level" && level;
}

}  // namespace

std::string source_metadata_to_json(const MithrilSourceMetadata& source) {
  return source_metadata_json(kFormatName, [&](JsonWriter& json) {
    json.member("method", mithril_method_name(source.method));
    json.member("original_dtype", dtype_name(source.original_dtype));
    if (source.group_size) json.member("group_size", *source.group_size);
    json.member("level", source.level);
  });
}

ReadSourceMetadata source_metadata_from_json(std::string_view metadata_json,
                                             unsigned max_json_depth) {
  ReadSourceMetadata read;
  const SourceMetadataPlace own =
      find_source_metadata(metadata_json, kFormatName, max_json_depth, [&](json::Value& object) {
        MithrilSourceMetadata source;
        bool has_method = false, has_dtype = false;
        const bool good = read_members(object, [&](std::string_view name, json::Value& member) {
          has_method = has_method || name == "method";
          has_dtype = has_dtype || name == "original_dtype";
          return read_member(name, member, source);
        });
        if (good && has_method && has_dtype) read.source = source;
        return read.source.has_value();
      });
  visit_others(metadata_json, own, max_json_depth,
               [&](std::string_view key, json::Value&) { read.other_members.emplace_back(key); });
  return read;
}

}  // namespace thalia::formats::mithril_quantized
