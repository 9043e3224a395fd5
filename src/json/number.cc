#include "json/number.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>

namespace thalia::json {
namespace {

// Beyond any exponent that digits could make up for: no text has 2^62 digits. Adding a number of
// digits to it does not overflow.
constexpr std::int64_t kHugeExponent = std::int64_t{1} << 62;

// Whether the number's magnitude is 1 or more. std::from_chars() says only that a number is out of
// range, not whether it is too large or too small.
bool is_at_least_one(std::string_view token) noexcept {
  if (token.starts_with('-')) token.remove_prefix(1);
  const std::size_t e = std::min(token.find_first_of("eE"), token.size());
  const std::string_view digits = token.substr(0, e);
  std::string_view power = token.substr(std::min(e + 1, token.size()));
  const bool negative = power.starts_with('-');
  if (negative || power.starts_with('+')) power.remove_prefix(1);
  std::int64_t exponent = 0;
  if (!power.empty() && std::from_chars(power.data(), power.data() + power.size(), exponent).ec ==
                            std::errc::result_out_of_range)
    exponent = kHugeExponent;
  exponent = std::min(exponent, kHugeExponent);
  const auto point = static_cast<std::int64_t>(std::min(digits.find('.'), digits.size()));
  const std::size_t any = digits.find_first_of("123456789");
  if (any == std::string_view::npos) return false;
  const auto first = static_cast<std::int64_t>(any);
  // 10^order <= the number < 10^(order + 1).
  const std::int64_t order =
      (first < point ? point - first - 1 : point - first) + (negative ? -exponent : exponent);
  return order >= 0;
}

}  // namespace

double to_double(std::string_view token) noexcept {
  double number = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), number);
  if (error != std::errc::result_out_of_range) return number;
  const double size = is_at_least_one(token) ? std::numeric_limits<double>::infinity() : 0.0;
  return token.starts_with('-') ? -size : size;
}

}  // namespace thalia::json
