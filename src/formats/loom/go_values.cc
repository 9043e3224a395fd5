#include "formats/loom/go_values.h"

#include <charconv>

#include "formats/source/json_fields.h"

namespace thalia::formats::loom {
namespace {

bool is_given(json::Value& value, json::Kind kind, std::string_view field) {
  if (value.kind() == json::Kind::null) return false;
  require_kind(value, kind, field);
  return true;
}

[[noreturn]] void refuse_number(std::string_view field, std::string_view token,
                                std::string_view bound) {
  fail_header(ErrorCode::bad_value, field, printable(token, 60), std::string(bound));
}

template <typename Integer>
void read_whole(json::Value& value, std::string_view field, Integer& out, std::string_view bound) {
  if (!is_given(value, json::Kind::number, field)) return;
  const std::string_view token = value.token();
  Integer number = 0;
  const char* const end = token.data() + token.size();
  const auto [stop, error] = std::from_chars(token.data(), end, number);
  if (error != std::errc{} || stop != end) refuse_number(field, token, bound);
  out = number;
}

// True where the number is less than 1, whatever its exponent: the first digit that is not 0, and
// how far it is from the point.
bool is_small(std::string_view token) {
  const std::size_t e = std::min(token.find_first_of("eE"), token.size());
  const std::string_view mantissa = token.substr(0, e);
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  const std::size_t first = mantissa.find_first_of("123456789");
  if (first == std::string_view::npos) return true;
  // A number of no more than 2^30 digits.
  std::int64_t place = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  if (e == token.size()) return place <= 0;
  std::string_view digits = token.substr(e + 1);
  if (digits.starts_with('+')) digits.remove_prefix(1);
  std::int64_t exponent = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), exponent).ec != std::errc{})
    return digits.starts_with('-');
  return exponent < -place;
}

template <typename Float>
void read_float(json::Value& value, std::string_view field, Float& out) {
  if (!is_given(value, json::Kind::number, field)) return;
  const std::string_view token = value.token();
  Float number = 0;
  const auto error = std::from_chars(token.data(), token.data() + token.size(), number).ec;
  if (error != std::errc{}) {
    // Too small is zero, too large is an error.
    if (!is_small(token)) refuse_number(field, token, "a number of the field's width");
    number = token.starts_with('-') ? -Float(0) : Float(0);
  }
  out = number;
}

}  // namespace

void go_value(json::Value& value, std::string_view field, std::int64_t& out) {
  read_whole(value, field, out, "an integer of 64 bits");
}

void go_value(json::Value& value, std::string_view field, std::uint64_t& out) {
  read_whole(value, field, out, "a whole number below 2^64");
}

void go_value(json::Value& value, std::string_view field, double& out) {
  read_float(value, field, out);
}

void go_value(json::Value& value, std::string_view field, float& out) {
  read_float(value, field, out);
}

void go_value(json::Value& value, std::string_view field, bool& out) {
  if (is_given(value, json::Kind::boolean, field)) out = value.token() == "true";
}

void go_value(json::Value& value, std::string_view field, std::string& out) {
  if (is_given(value, json::Kind::string, field)) out = value.string();
}

bool go_object(json::Value& value, std::string_view field) {
  return is_given(value, json::Kind::object, field);
}

bool go_array(json::Value& value, std::string_view field) {
  return is_given(value, json::Kind::array, field);
}

}  // namespace thalia::formats::loom
