// The metadata of a safetensors file travel in a member of a .thalia file's metadata, so that a
// conversion back finds them. What it finds may have been edited since: only an object of exactly
// this form counts, and everything else is reported as lost rather than half understood.
#include "interop/safetensors/origin.h"

#include <set>
#include <utility>

#include "json/reader.h"
#include "json/writer.h"

namespace thalia::interop {
namespace {

constexpr std::string_view kFormatKey = "format";
constexpr std::string_view kFormatName = "safetensors";
constexpr std::string_view kMetadataKey = "metadata";

// False where something in `value`, which somebody else may have written, is not as above.
bool read_origin(json::Value& value, std::optional<SafetensorsMetadata>& metadata) {
  if (value.kind() != json::Kind::object) return false;
  bool good = true;
  value.for_each_member([&](std::string_view key, json::Value& inner) {
    // An unknown key, another type or a second `metadata`: somebody else wrote it.
    if (key != kMetadataKey || inner.kind() != json::Kind::object || metadata) {
      good = false;
      return;
    }
    metadata.emplace();
    std::set<std::string, std::less<>> keys;
    inner.for_each_member([&](std::string_view name, json::Value& text) {
      if (text.kind() != json::Kind::string || !keys.emplace(name).second) {
        good = false;
      } else {
        metadata->emplace_back(name, text.string());
      }
    });
  });
  return good;
}

}  // namespace

std::string origin_to_json(const std::optional<SafetensorsMetadata>& metadata) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member(kFormatKey, kFormatName).key(kFormatName).begin_object();
  if (metadata) {
    json.key(kMetadataKey).begin_object();
    for (const auto& [key, value] : *metadata) json.member(key, value);
    json.end_object();
  }
  json.end_object().end_object();
  return text;
}

SafetensorsOrigin origin_from_json(std::string_view metadata_json, unsigned max_json_depth) {
  SafetensorsOrigin origin;
  if (metadata_json.empty()) return origin;
  json::walk_object(metadata_json, max_json_depth, [&](std::string_view key, json::Value& value) {
    if (key == kFormatKey && value.kind() == json::Kind::string && value.string() == kFormatName) {
      return;
    }
    if (key == kFormatName && !origin.metadata && read_origin(value, origin.metadata)) return;
    origin.other_keys.emplace_back(key);
  });
  return origin;
}

}  // namespace thalia::interop
