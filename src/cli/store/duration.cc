#include "cli/store/duration.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <system_error>
#include <utility>

#include "cli/terminal/escape.h"
#include "thalia/error.h"

namespace thalia::cli {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t seconds;
};
constexpr std::uint64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
constexpr std::array kUnits{Unit{"", 1},      Unit{"s", 1},    Unit{"min", kMinute},
                            Unit{"h", kHour}, Unit{"d", kDay}, Unit{"w", 7 * kDay}};

}  // namespace

std::optional<std::uint64_t> parse_duration(std::string_view text) noexcept {
  std::uint64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [unit_begin, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || count == 0) return std::nullopt;
  const std::string_view name(unit_begin, static_cast<std::size_t>(end - unit_begin));
  for (const Unit& unit : kUnits)
    if (unit.name == name && count <= UINT64_MAX / unit.seconds) return count * unit.seconds;
  return std::nullopt;
}

std::string duration_text(std::uint64_t seconds) {
  // Two of a unit before it is used: "90 min" says more than "1 h".
  if (seconds < 2 * kMinute) return fmt::format("{} s", seconds);
  if (seconds < 2 * kHour) return fmt::format("{} min", seconds / kMinute);
  if (seconds < 2 * kDay) return fmt::format("{} h", seconds / kHour);
  return fmt::format("{} d", seconds / kDay);
}

CLI::Option* add_duration(CLI::App& app, const char* usage, std::optional<std::uint64_t>& seconds,
                          std::string help) {
  const std::string option(usage, std::string_view(usage).find(' '));
  const auto parse = [&seconds, option](const std::string& text) {
    seconds = parse_duration(text);
    if (seconds) return;
    throw UsageError(ErrorCode::bad_argument, {},
                     {.field = option,
                      .value = fmt::format("'{}'", escape(text)),
                      .bound = "a time such as 90s, 30min, 12h or 7d"});
  };
  return add_option(app, usage, parse, std::move(help));
}

}  // namespace thalia::cli
