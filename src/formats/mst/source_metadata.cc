// Anybody who has the .thalia file may have edited its metadata: a member counts as a .mst file's
// only if it has exactly the form that source_metadata_to_json() gives it. Among other
// members, texts are kept: those of the object itself, and those that another format has as its own
// "metadata".
#include "formats/mst/source_metadata.h"

#include <optional>
#include <set>

#include "formats/source/metadata_member.h"

namespace thalia::formats::mst {
namespace {

constexpr std::string_view kFormatName = "mst";
constexpr std::string_view kMetadataKey = "metadata";

using Texts = std::vector<std::pair<std::string, std::string>>;

bool read_number(const json::Value& value, std::uint64_t greatest, std::uint64_t& number) {
  const auto read = value.unsigned_integer();
  number = read.value_or(0);
  return read && number <= greatest;
}

bool read_names(json::Value& value, std::vector<std::string>& names) {
  if (value.kind() != json::Kind::array) return false;
  bool good = true;
  value.for_each_element([&](json::Value& name) {
    good = good && name.kind() == json::Kind::string;
    if (good) names.emplace_back(name.string());
  });
  return good;
}

// A permutation of so many numbers.
bool read_places(json::Value& value, std::vector<std::size_t>& places) {
  if (value.kind() != json::Kind::array) return false;
  bool good = true;
  value.for_each_element([&](json::Value& place) {
    std::uint64_t number = 0;
    good = good && read_number(place, UINT64_MAX, number);
    places.push_back(number);
  });
  std::vector<bool> seen(places.size());
  for (const std::size_t place : places) {
    good = good && place < seen.size() && !seen[place];
    if (good) seen[place] = true;
  }
  return good;
}

bool read_member(std::string_view key, json::Value& value, MstSourceMetadata& source) {
  std::uint64_t number = 0;
  if (key == "version") {
    const bool good = read_number(value, 1, number);
    source.version = static_cast<std::uint32_t>(number);
    return good;
  }
  if (key == "level") {
    const bool good = read_number(value, 22, number);
    source.level = static_cast<int>(number);
    return good;
  }
  if (key == "byte_grouping") {
    source.byte_grouping = value.token() == "true";
    return value.kind() == json::Kind::boolean;
  }
  if (key == kMetadataKey) return read_texts(value, source.metadata);
  if (key == "order") return read_names(value, source.order);
  return key == "header_order" && read_places(value, source.header_order);
}

std::optional<MstSourceMetadata> read_own(json::Value& value) {
  MstSourceMetadata source;
  const bool good = read_members(value, [&](std::string_view key, json::Value& member) {
    return read_member(key, member, source);
  });
  // A header of other names than the frames': neither order means anything.
  if (!good || (!source.header_order.empty() && source.header_order.size() != source.order.size()))
    return std::nullopt;
  return source;
}

// What "format" says, if there is an object of that name: "pt" alone says nothing.
std::optional<std::string> named_format(std::string_view metadata, unsigned max_depth) {
  std::optional<std::string> format;
  std::set<std::string, std::less<>> objects;
  if (metadata.empty()) return format;
  json::walk_object(metadata, max_depth, [&](std::string_view key, json::Value& value) {
    if (value.kind() == json::Kind::object) objects.emplace(key);
    if (key == kFormatKey && value.kind() == json::Kind::string) format = value.string();
  });
  if (format && !objects.contains(*format)) format.reset();
  return format;
}

// What a member of another format's name has as texts. False if it has anything else.
bool read_foreign(json::Value& value, Texts& texts) {
  if (value.kind() != json::Kind::object) return false;
  bool good = true;
  value.for_each_member([&](std::string_view key, json::Value& member) {
    Texts found;
    const bool fits = key == kMetadataKey && read_texts(member, found);
    if (fits) texts.insert(texts.end(), found.begin(), found.end());
    good = good && fits;
  });
  return good;
}

}  // namespace

std::string source_metadata_to_json(const MstFile& file) {
  return source_metadata_json(kFormatName, [&](JsonWriter& json) {
    json.member("version", file.version()).member("level", file.level());
    json.member("byte_grouping", file.byte_grouping()).key(kMetadataKey).begin_object();
    for (const auto& [key, value] : file.metadata()) json.member(key, value);
    json.end_object().key("order").begin_array();
    for (const MstTensor& tensor : file.tensors()) json.value(tensor.name);
    json.end_array();
    if (!file.header_order().empty()) {
      json.key("header_order").begin_array();
      for (const std::size_t place : file.header_order()) json.value(place);
      json.end_array();
    }
  });
}

MstSourceMetadata source_metadata_from_json(std::string_view metadata_json,
                                            unsigned max_json_depth) {
  MstSourceMetadata source;
  const SourceMetadataPlace own =
      find_source_metadata(metadata_json, kFormatName, max_json_depth, [&](json::Value& object) {
        auto read = read_own(object);
        if (!read) return false;
        source = *std::move(read);
        return true;
      });
  const std::optional<std::string> format = named_format(metadata_json, max_json_depth);
  Texts texts;
  visit_others(metadata_json, own, max_json_depth, [&](std::string_view key, json::Value& value) {
    if (value.kind() == json::Kind::string) {
      const std::string_view text = value.string();
      if (key != kFormatKey || text != format) texts.emplace_back(key, text);
    } else if (key != format || !read_foreign(value, texts)) {
      source.other_members.emplace_back(key);
    }
  });
  std::set<std::string, std::less<>> keys;
  for (const auto& [key, value] : source.metadata) keys.insert(key);
  for (auto& [key, value] : texts) {
    if (keys.insert(key).second) {
      source.metadata.emplace_back(std::move(key), std::move(value));
    } else {
      source.other_members.push_back(key);
    }
  }
  return source;
}

}  // namespace thalia::formats::mst
