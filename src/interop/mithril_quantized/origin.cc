// Whoever has the .thalia file may have edited its metadata: only what has exactly this form
// counts.
#include "interop/mithril_quantized/origin.h"

#include <set>

#include "interop/mithril_quantized/parts.h"
#include "json/reader.h"
#include "json/writer.h"

namespace thalia::interop::mithril_quantized {
namespace {

std::optional<std::uint64_t> number_in(const json::Value& value, std::uint64_t least,
                                       std::uint64_t greatest) {
  const auto number = value.unsigned_integer();
  return number && *number >= least && *number <= greatest ? number : std::nullopt;
}

bool read_member(std::string_view key, json::Value& value, Origin& origin) {
  if (key == "method" && value.kind() == json::Kind::string) {
    const auto method = method_from_name(value.string());
    origin.method = method.value_or(origin.method);
    return method.has_value();
  }
  if (key == "original_dtype" && value.kind() == json::Kind::string) {
    const auto dtype = dtype_from_name(value.string());
    origin.original_dtype = dtype.value_or(origin.original_dtype);
    return dtype.has_value();
  }
  if (key == "group_size") {
    origin.group_size = number_in(value, 0, UINT64_MAX);
    return origin.group_size.has_value();
  }
  const auto level = number_in(value, 1, 22);
  origin.level = static_cast<int>(level.value_or(3));
  return key == "level" && level;
}

}  // namespace

std::string origin_to_json(const Origin& origin) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("format", kFormatName).key(kFormatName).begin_object();
  json.member("method", mithril_method_name(origin.method));
  json.member("original_dtype", dtype_name(origin.original_dtype));
  if (origin.group_size) json.member("group_size", *origin.group_size);
  json.member("level", origin.level).end_object().end_object();
  return text;
}

ReadOrigin origin_from_json(std::string_view metadata_json, unsigned max_json_depth) {
  ReadOrigin read;
  json::walk_object(metadata_json, max_json_depth, [&](std::string_view key, json::Value& value) {
    if (key == "format" && value.kind() == json::Kind::string && value.string() == kFormatName)
      return;
    if (key != kFormatName || value.kind() != json::Kind::object || read.origin) {
      read.other_members.emplace_back(key);
      return;
    }
    Origin origin;
    bool good = true;
    std::set<std::string, std::less<>> keys;
    value.for_each_member([&](std::string_view name, json::Value& member) {
      good = good && keys.emplace(name).second && read_member(name, member, origin);
    });
    if (good && keys.contains("method") && keys.contains("original_dtype")) {
      read.origin = origin;
    } else {
      read.other_members.emplace_back(key);
    }
  });
  return read;
}

}  // namespace thalia::interop::mithril_quantized
