// JsonWriter: JSON, piece by piece, into a string, compact or indented. The library writes its own
// JSON texts with it.
//
//   std::string text;
//   thalia::JsonWriter json(text);
//   json.begin_object().member("regions", 3).key("names").begin_array();
//   for (const auto& name : names) json.value(name);
//   json.end_array().end_object();
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace thalia {

/// How texts for people are laid out: each member and element on a line of its own, empty objects
/// and arrays as "{}" and "[]", as serde_json and Python's json do it.
struct JsonIndent {
  unsigned spaces = 2;      ///< a level
  std::string_view margin;  ///< before every line but the first; has to live as the writer
};

/// Appends to a string that the caller owns and may hand on and clear between any two calls, so
/// that a long text needs little memory. No white space, unless it is to be indented. Strings are
/// escaped as serde_json does:
/// \" \\ \b \f \n \r \t, other control characters as \u00xx, everything else verbatim; they are
/// expected to be UTF-8. Calls in an order that makes no JSON are the caller's bug and checked by
/// assertion only. Externally synchronised.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}
  JsonWriter(std::string& out, const JsonIndent& indent) : out_(out), indent_(indent) {}

  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view key);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  template <std::integral T>
  JsonWriter& value(T number) {
    if constexpr (std::same_as<T, bool>) {
      return raw(number ? "true" : "false");
    } else if constexpr (std::unsigned_integral<T>) {
      return unsigned_value(number);
    } else {
      return signed_value(number);
    }
  }
  /// The shortest decimal that reads back as the same number of its own width; null for what JSON
  /// has no number for (infinities, NaN).
  JsonWriter& value(double number);
  JsonWriter& value(float number);
  JsonWriter& null() { return raw("null"); }
  /// A finished JSON text in the place of a value, verbatim.
  JsonWriter& raw(std::string_view json);

  template <typename T>
  JsonWriter& member(std::string_view name, const T& of_name) {
    return key(name).value(of_name);
  }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& unsigned_value(std::uint64_t number);
  JsonWriter& signed_value(std::int64_t number);
  void begin_value();
  void begin_piece();
  void begin_line();

  std::string& out_;
  std::optional<JsonIndent> indent_{};
  std::vector<char> open_;  ///< brackets not closed yet
  bool need_comma_ = false;
  bool after_key_ = false;
};

}  // namespace thalia
