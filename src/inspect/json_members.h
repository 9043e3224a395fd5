// Members of JSON objects that results have in common.
#pragma once

#include <optional>
#include <string_view>

#include "inspect/shown_name.h"
#include "json/writer.h"

namespace thalia::inspect {

/// A member that is null if nothing is known of it.
template <typename T>
void add_known(JsonWriter& json, std::string_view key, const std::optional<T>& value) {
  json.key(key);
  value ? json.value(*value) : json.null();
}
/// The same of a member of something that may not be known.
template <typename T, typename Member>
void add_known(JsonWriter& json, std::string_view key, const std::optional<T>& of,
               Member T::*member) {
  json.key(key);
  of ? json.value((*of).*member) : json.null();
}

/// A member that lists names, or sentences.
void add_list(JsonWriter& json, std::string_view key, const auto& texts) {
  json.key(key).begin_array();
  for (const auto& text : texts) json.value(as_utf8(text));
  json.end_array();
}

}  // namespace thalia::inspect
