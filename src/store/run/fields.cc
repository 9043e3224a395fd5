#include "store/run/fields.h"

#include <utility>

#include "base/fail.h"
#include "base/suggestion.h"
#include "thalia/text.h"

namespace thalia::store {

std::string shown(const Value& value) {
  if (value.kind() == Value::Kind::string)
    return fmt::format("'{}'", printable(value.as_string(), 60));
  if (value.kind() == Value::Kind::number) return printable(value.number_text(), 60);
  return std::string(kind_name(value.kind()));
}

Fields::Fields(const Value& object, std::string place) : object_(object), place_(std::move(place)) {
  if (object.is_object()) return;
  std::string whole = place_.empty() ? "the text" : place_.substr(0, place_.size() - 1);
  throw FormatError(ErrorCode::bad_value, {},
                    {.field = std::move(whole), .value = shown(object), .bound = "an object"});
}

const Value* Fields::find(std::string_view name) {
  asked_.emplace(name);
  const Value* const value = object_.find(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

void Fields::fail(std::string_view name, std::string value, std::string expected) const {
  throw FormatError(
      ErrorCode::bad_value, {},
      {.field = place_of(name), .value = std::move(value), .bound = std::move(expected)});
}

std::optional<std::string> Fields::text(std::string_view name) {
  const Value* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->kind() != Value::Kind::string) fail(name, shown(*value), "a text");
  return value->as_string();
}

std::optional<std::uint64_t> Fields::integer(std::string_view name, std::uint64_t least,
                                             std::uint64_t most) {
  const Value* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->kind() == Value::Kind::number) {
    try {
      const std::uint64_t number = value->as_uint64();
      if (number >= least && number <= most) return number;
    } catch (const UsageError&) {
      // Negative, or no integer: refused below.
    }
  }
  fail(name, shown(*value), fmt::format("an integer from {} to {}", least, most));
}

std::optional<double> Fields::number(std::string_view name) {
  const Value* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->kind() != Value::Kind::number) fail(name, shown(*value), "a number");
  return value->as_double();
}

std::optional<bool> Fields::truth(std::string_view name) {
  const Value* const value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->kind() != Value::Kind::boolean) fail(name, shown(*value), "true or false");
  return value->as_bool();
}

std::optional<std::vector<std::string>> Fields::texts(std::string_view name) {
  const std::vector<Value>* const values = list(name);
  if (values == nullptr) return std::nullopt;
  std::vector<std::string> found;
  for (const Value& value : *values) {
    if (value.kind() != Value::Kind::string) fail(name, shown(value), "texts");
    found.push_back(value.as_string());
  }
  return found;
}

const Value* Fields::object(std::string_view name) {
  const Value* const value = find(name);
  if (value != nullptr && !value->is_object()) fail(name, shown(*value), "an object");
  return value;
}

const std::vector<Value>* Fields::list(std::string_view name) {
  const Value* const value = find(name);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) fail(name, shown(*value), "a list");
  return &value->elements();
}

void Fields::require_all_known() const {
  for (const Value::Member& member : object_.members()) {
    if (asked_.contains(member.name)) continue;
    Suggestion suggestion(member.name);
    for (const std::string& name : asked_) suggestion.offer(name);
    throw FormatError(ErrorCode::bad_value, "nobody knows this member" + suggestion.text(),
                      {.field = printable(place_of(member.name))});
  }
}

}  // namespace thalia::store
