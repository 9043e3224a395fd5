// Values are copied while the text is walked, since a Value cannot be kept. Recursion is as deep as
// the text, which the walk has limited. Copies are compared and stored as texts, so no number is
// ever changed by reading and writing it.
#include "json/copy.h"

#include <map>

namespace thalia::json {
namespace {

void write_canonical(const std::map<std::string, std::string, std::less<>>& members,
                     JsonWriter& out) {
  out.begin_object();
  for (const auto& [key, value] : members) out.key(key).raw(value);
  out.end_object();
}

}  // namespace

void copy_value(Value& value, JsonWriter& out) {
  switch (value.kind()) {
    case Kind::object:
      out.begin_object();
      value.for_each_member([&](std::string_view key, Value& member) {
        out.key(key);
        copy_value(member, out);
      });
      out.end_object();
      return;
    case Kind::array:
      out.begin_array();
      value.for_each_element([&](Value& element) { copy_value(element, out); });
      out.end_array();
      return;
    case Kind::string:
      out.value(value.string());
      return;
    case Kind::number:
    case Kind::boolean:
    case Kind::null:
      // Verbatim: a number may have more digits than any type here.
      out.raw(value.token());
      return;
  }
}

std::string copied(Value& value) {
  std::string text;
  JsonWriter out(text);
  copy_value(value, out);
  return text;
}

std::string canonical(Value& value) {
  if (value.kind() != Kind::object && value.kind() != Kind::array) return copied(value);
  std::string text;
  JsonWriter out(text);
  if (value.kind() == Kind::array) {
    out.begin_array();
    value.for_each_element([&](Value& element) { out.raw(canonical(element)); });
    out.end_array();
    return text;
  }
  // Sorted by key; a later member with the same key replaces the earlier.
  std::map<std::string, std::string, std::less<>> members;
  value.for_each_member(
      [&](std::string_view key, Value& member) { members[std::string(key)] = canonical(member); });
  write_canonical(members, out);
  return text;
}

std::string canonical_object(std::string_view text, unsigned max_depth) {
  std::map<std::string, std::string, std::less<>> members;
  walk_object(text, max_depth, [&](std::string_view key, Value& value) {
    members[std::string(key)] = canonical(value);
  });
  std::string result;
  JsonWriter out(result);
  write_canonical(members, out);
  return result;
}

Members members_of(std::string_view text, unsigned max_depth) {
  Members members;
  std::map<std::string, std::size_t, std::less<>> places;
  walk_object(text, max_depth, [&](std::string_view key, Value& value) {
    const auto [place, is_new] = places.emplace(std::string(key), members.size());
    if (is_new) {
      members.emplace_back(std::string(key), copied(value));
    } else {
      members[place->second].second = copied(value);
    }
  });
  return members;
}

}  // namespace thalia::json
