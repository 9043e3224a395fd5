#include "formats/orbax/source_metadata.h"

#include <unordered_set>
#include <utility>

#include "formats/source/metadata_member.h"

namespace thalia::formats::orbax {
namespace {

constexpr std::string_view kFormatName = "mithril-orbax";
constexpr std::string_view kMetadataKey = "metadata";

// False unless it is {"metadata":{…}} and nothing else, of which the members are appended.
bool read_own(json::Value& value, json::Members& members) {
  bool found = false;
  const bool good = read_members(value, [&](std::string_view key, json::Value& member) {
    found = key == kMetadataKey && member.kind() == json::Kind::object;
    if (found) {
      member.for_each_member([&](std::string_view name, json::Value& inner) {
        members.emplace_back(name, json::copied(inner));
      });
    }
    return found;
  });
  return good && found;
}

// The keys of the folder itself, and those that another member has taken.
using TakenKeys = std::unordered_set<std::string>;

void add(OrbaxSourceMetadata& source, TakenKeys& taken, std::string key, std::string value) {
  if (taken.insert(key).second) {
    source.others.emplace_back(std::move(key), std::move(value));
  } else {
    source.lost_members.push_back(std::move(key));
  }
}

}  // namespace

std::string source_metadata_to_json(const json::Members& others) {
  return source_metadata_json(kFormatName, [&](JsonWriter& json) {
    json.key(kMetadataKey).begin_object();
    for (const auto& [key, value] : others) json.key(key).raw(value);
    json.end_object();
  });
}

OrbaxSourceMetadata source_metadata_from_json(std::string_view metadata_json,
                                              unsigned max_json_depth) {
  json::Members own;
  const SourceMetadataPlace place =
      find_source_metadata(metadata_json, kFormatName, max_json_depth, [&](json::Value& object) {
        own.clear();
        return read_own(object, own);
      });
  OrbaxSourceMetadata source;
  TakenKeys taken{"arrays", "version"};
  if (place)
    for (auto& [key, value] : own) add(source, taken, std::move(key), std::move(value));
  visit_others(metadata_json, place, max_json_depth, [&](std::string_view key, json::Value& value) {
    add(source, taken, std::string(key), json::copied(value));
  });
  return source;
}

}  // namespace thalia::formats::orbax
