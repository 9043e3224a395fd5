// Whoever has the .thalia file may have edited its metadata: a member counts as a .mst file's only
// where it has exactly the form that origin_to_json() gives it. Of others, texts are kept: those of
// the object itself, and those that another format has as its own "metadata".
#include "interop/mst/origin.h"

#include <algorithm>
#include <optional>
#include <set>

#include "json/copy.h"
#include "json/reader.h"
#include "json/writer.h"

namespace thalia::interop::mst {
namespace {

constexpr std::string_view kFormatKey = "format";
constexpr std::string_view kFormatName = "mst";
constexpr std::string_view kMetadataKey = "metadata";

using Texts = std::vector<std::pair<std::string, std::string>>;

// False where a value is no text, or a key stands there twice.
bool read_texts(json::Value& value, Texts& texts) {
  if (value.kind() != json::Kind::object) return false;
  bool good = true;
  std::set<std::string, std::less<>> keys;
  value.for_each_member([&](std::string_view key, json::Value& text) {
    if (text.kind() != json::Kind::string || !keys.emplace(key).second) {
      good = false;
    } else {
      texts.emplace_back(key, text.string());
    }
  });
  return good;
}

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

bool read_member(std::string_view key, json::Value& value, Origin& origin) {
  std::uint64_t number = 0;
  if (key == "version") {
    const bool good = read_number(value, 1, number);
    origin.version = static_cast<std::uint32_t>(number);
    return good;
  }
  if (key == "level") {
    const bool good = read_number(value, 22, number);
    origin.level = static_cast<int>(number);
    return good;
  }
  if (key == "byte_grouping") {
    origin.byte_grouping = value.token() == "true";
    return value.kind() == json::Kind::boolean;
  }
  if (key == kMetadataKey) return read_texts(value, origin.metadata);
  if (key == "order") return read_names(value, origin.order);
  return key == "header_order" && read_places(value, origin.header_order);
}

std::optional<Origin> read_own(const std::string& text, unsigned max_depth) {
  Origin origin;
  bool good = true;
  json::walk_value(text, max_depth, [&](json::Value& value) {
    good = value.kind() == json::Kind::object;
    std::set<std::string, std::less<>> keys;
    if (!good) return;
    value.for_each_member([&](std::string_view key, json::Value& member) {
      good = good && keys.emplace(key).second && read_member(key, member, origin);
    });
  });
  // A header of other names than the frames': neither order means anything.
  if (!origin.header_order.empty() && origin.header_order.size() != origin.order.size())
    good = false;
  return good ? std::optional(std::move(origin)) : std::nullopt;
}

// What a member of another format's name has as texts. False where it has anything else.
bool read_foreign(const std::string& text, unsigned max_depth, Texts& texts) {
  bool good = true;
  json::walk_value(text, max_depth, [&](json::Value& value) {
    good = value.kind() == json::Kind::object;
    if (!good) return;
    value.for_each_member([&](std::string_view key, json::Value& member) {
      Texts found;
      const bool fits = key == kMetadataKey && read_texts(member, found);
      if (fits) texts.insert(texts.end(), found.begin(), found.end());
      good = good && fits;
    });
  });
  return good;
}

std::optional<std::string> text_of(const std::string& json_value, unsigned max_depth) {
  std::optional<std::string> text;
  json::walk_value(json_value, max_depth, [&](json::Value& value) {
    if (value.kind() == json::Kind::string) text = value.string();
  });
  return text;
}

}  // namespace

std::string origin_to_json(const MstFile& file) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member(kFormatKey, kFormatName).key(kFormatName).begin_object();
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
  json.end_object().end_object();
  return text;
}

Origin origin_from_json(std::string_view metadata_json, unsigned max_json_depth) {
  Origin origin;
  const json::Members members = json::members_of(metadata_json, max_json_depth);
  const auto value_of = [&](std::string_view key) {
    const auto found = std::ranges::find(members, key, &json::Members::value_type::first);
    return found == members.end() ? nullptr : &found->second;
  };
  const std::string* const named = value_of(kFormatKey);
  std::optional<std::string> format = named ? text_of(*named, max_json_depth) : std::nullopt;
  // "pt" says nothing here; a name with a member of that name does.
  if (format && value_of(*format) == nullptr) format.reset();

  bool is_own = false;
  if (const std::string* const own = value_of(kFormatName)) {
    if (auto read = read_own(*own, max_json_depth)) {
      origin = *std::move(read);
      is_own = true;
    }
  }
  Texts texts;
  for (const auto& [key, value] : members) {
    if (key == kFormatKey && format) continue;
    if (key == kFormatName && is_own) continue;
    if (key == format) {
      if (!read_foreign(value, max_json_depth, texts)) origin.other_members.push_back(key);
    } else if (auto text = text_of(value, max_json_depth)) {
      texts.emplace_back(key, *std::move(text));
    } else {
      origin.other_members.push_back(key);
    }
  }
  std::set<std::string, std::less<>> keys;
  for (const auto& [key, value] : origin.metadata) keys.insert(key);
  for (auto& [key, value] : texts) {
    if (keys.insert(key).second) {
      origin.metadata.emplace_back(std::move(key), std::move(value));
    } else {
      origin.other_members.push_back(key);
    }
  }
  return origin;
}

}  // namespace thalia::interop::mst
