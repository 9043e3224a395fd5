#include "cli/report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cli/print/print.h"
#include "thalia/text.h"

namespace thalia::cli {

double tick_distance(double range, double least) {
  double rough = std::max(range / 6, least);
  if (!(rough > 0)) rough = 1;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

double byte_tick_distance(double range) {
  constexpr double kUnit = 1024;
  double unit = 1;
  while (range / unit >= kUnit) unit *= kUnit;
  return tick_distance(range / unit, unit == 1 ? 1 : 0) * unit;
}

std::string whole_number(double value) {
  // Beyond this, digits would not fit the margin, and llround() would end at 2^63.
  constexpr double kGrouped = 1e15;
  return value < kGrouped ? grouped(static_cast<std::uint64_t>(std::llround(value)))
                          : fmt::format("{:g}", value);
}

std::string percent_text(double share) {
  const double percent = share * 100;
  if (percent == 0) return "0";
  if (percent < 1e-5 || percent >= 1e6) return fmt::format("{:.1e} %", percent);
  constexpr double kWhole = 100;  // three digits are enough
  return percent >= kWhole ? fmt::format("{} %", whole_number(percent))
                           : fmt::format("{:.2g} %", percent);
}

std::string short_name(std::string_view name, std::size_t most) {
  std::vector<std::size_t> begins;
  for (std::size_t at = 0; at < name.size();) {
    begins.push_back(at);
    at += std::max<std::size_t>(first_character(name.substr(at)).length, 1);
  }
  if (begins.size() <= most || most < 3) return std::string(name);
  const auto character = [&](std::size_t i) { return name[begins[i]]; };
  const auto is_separator = [&](std::size_t i) {
    return character(i) == '.' || character(i) == '/';
  };
  const auto is_digit = [&](std::size_t i) { return character(i) >= '0' && character(i) <= '9'; };
  // The end is that of whole parts if it can be.
  const std::size_t room = most - 1;
  const std::size_t longest = room * 9 / 20;
  std::size_t tail = begins.size() - longest;
  for (std::size_t i = tail; i < begins.size() - longest / 2; ++i) {
    if (!is_separator(i - 1)) continue;
    tail = i;
    break;
  }
  // The beginning takes the rest. Half a number would be another layer's.
  std::size_t head = room - (begins.size() - tail);
  while (head > 1 && is_digit(head - 1) && is_digit(head)) --head;
  while (head > 1 && is_separator(head - 1)) --head;
  return fmt::format("{}…{}", name.substr(0, begins[head]), name.substr(begins[tail]));
}

}  // namespace thalia::cli
