#include "interop/orbax/origin.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "json/reader.h"
#include "json/writer.h"

namespace thalia::interop::orbax {
namespace {

constexpr std::string_view kFormatKey = "format";
constexpr std::string_view kFormatName = "mithril-orbax";
constexpr std::string_view kMetadataKey = "metadata";

// The object `metadata` where the value is {"metadata":{…}} and nothing else.
std::optional<json::Members> read_own(const std::string& text, unsigned max_depth) {
  std::optional<json::Members> members;
  json::walk_value(text, max_depth, [&](json::Value& value) {
    if (value.kind() != json::Kind::object) return;
    unsigned count = 0;
    std::optional<std::string> found;
    value.for_each_member([&](std::string_view key, json::Value& member) {
      ++count;
      if (key == kMetadataKey && member.kind() == json::Kind::object) found = json::copied(member);
    });
    if (count == 1 && found) members = json::members_of(*found, max_depth);
  });
  return members;
}

// The keys of the folder itself, and those that another member has taken.
using TakenKeys = std::unordered_set<std::string>;

void add(Origin& origin, TakenKeys& taken, const std::string& key, const std::string& value) {
  if (taken.insert(key).second) {
    origin.others.emplace_back(key, value);
  } else {
    origin.lost_members.push_back(key);
  }
}

}  // namespace

std::string origin_to_json(const json::Members& others) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member(kFormatKey, kFormatName).key(kFormatName).begin_object();
  json.key(kMetadataKey).begin_object();
  for (const auto& [key, value] : others) json.key(key).raw(value);
  json.end_object().end_object().end_object();
  return text;
}

Origin origin_from_json(std::string_view metadata_json, unsigned max_json_depth) {
  const json::Members members = json::members_of(metadata_json, max_json_depth);
  const auto found = std::ranges::find(members, kFormatName, &json::Members::value_type::first);
  const auto own = found == members.end() ? std::nullopt : read_own(found->second, max_json_depth);
  Origin origin;
  TakenKeys taken{"arrays", "version"};
  if (own)
    for (const auto& [key, value] : *own) add(origin, taken, key, value);
  for (const auto& [key, value] : members) {
    if (own && key == kFormatName) continue;
    if (own && key == kFormatKey && value == '"' + std::string(kFormatName) + '"') continue;
    add(origin, taken, key, value);
  }
  return origin;
}

}  // namespace thalia::interop::orbax
