// Colours of the terminal: what a piece of text means, and whether it is shown in a colour.
#pragma once

#include <string>
#include <string_view>

namespace thalia::cli {

enum class Style : unsigned char { heading, added, removed, changed, error, warning };

enum class ColorMode : unsigned char {
  automatic,  ///< on a terminal that has colours, unless NO_COLOR is set and not empty
  always,
  never
};

/// What --color says, for the whole process. Set before the first output.
ColorMode& color_mode() noexcept;
/// Whether what is written to the descriptor may have colours.
bool has_color(int descriptor) noexcept;
/// The text between the codes of its style. The text has to be safe for a terminal.
std::string in_color(Style style, std::string_view text);

}  // namespace thalia::cli
