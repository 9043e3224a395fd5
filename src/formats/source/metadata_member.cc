// The text is walked twice, since "format" may come before the member that it announces, and
// so may what is untrusted if that member is not of the form.
#include "formats/source/metadata_member.h"

#include <set>

namespace thalia::formats {

std::string source_metadata_json(std::string_view name,
                                 const std::function<void(JsonWriter&)>& write) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member(kFormatKey, name).key(name).begin_object();
  write(json);
  json.end_object().end_object();
  return text;
}

SourceMetadataPlace find_source_metadata(std::string_view metadata, std::string_view name,
                                         unsigned max_depth,
                                         const std::function<bool(json::Value& object)>& read) {
  SourceMetadataPlace found;
  if (metadata.empty()) return found;
  std::size_t at = 0;
  json::walk_object(metadata, max_depth, [&](std::string_view key, json::Value& value) {
    if (key == name && !found.own && value.kind() == json::Kind::object) {
      if (read(value)) found.own = at;
    } else if (key == kFormatKey && !found.format && value.kind() == json::Kind::string) {
      if (value.string() == name) found.format = at;
    }
    ++at;
  });
  return found ? found : SourceMetadataPlace{};
}

void visit_others(std::string_view metadata, const SourceMetadataPlace& source, unsigned max_depth,
                  const json::MemberVisitor& visit) {
  if (metadata.empty()) return;
  std::size_t at = 0;
  json::walk_object(metadata, max_depth, [&](std::string_view key, json::Value& value) {
    if (at != source.own && at != source.format) visit(key, value);
    ++at;
  });
}

bool read_members(json::Value& value,
                  const std::function<bool(std::string_view key, json::Value& member)>& read) {
  if (value.kind() != json::Kind::object) return false;
  bool good = true;
  std::set<std::string, std::less<>> keys;
  value.for_each_member([&](std::string_view key, json::Value& member) {
    good = good && keys.emplace(key).second && read(key, member);
  });
  return good;
}

bool read_texts(json::Value& value, std::vector<std::pair<std::string, std::string>>& texts) {
  return read_members(value, [&](std::string_view key, json::Value& text) {
    if (text.kind() != json::Kind::string) return false;
    texts.emplace_back(key, text.string());
    return true;
  });
}

}  // namespace thalia::formats
