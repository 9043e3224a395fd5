// The only place with codes of colours: the eight that every terminal has, which follow its theme.
#include "cli/terminal/style.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace thalia::cli {
namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string_view code_of(Style style) {
  switch (style) {
    case Style::heading:
      return "1";
    case Style::added:
      return "32";
    case Style::removed:
    case Style::error:
      return "31";
    case Style::changed:
    case Style::warning:
      return "33";
  }
  return "0";
}

}  // namespace

ColorMode& color_mode() noexcept {
  static ColorMode mode = ColorMode::automatic;
  return mode;
}

bool has_color(int descriptor) noexcept {
  if (color_mode() != ColorMode::automatic) return color_mode() == ColorMode::always;
  const std::string_view terminal = variable("TERM");
  return ::isatty(descriptor) == 1 && !terminal.empty() && terminal != "dumb" &&
         variable("NO_COLOR").empty();
}

std::string in_color(Style style, std::string_view text) {
  return fmt::format("\x1b[{}m{}\x1b[0m", code_of(style), text);
}

}  // namespace thalia::cli
