// One table of colours for pictures and pages. Pictures have them as plain rules, since librsvg
// does not know custom properties.
#include "cli/report/theme.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <string_view>

namespace thalia::cli {
namespace {

struct Colour {
  std::string_view name;
  std::string_view property;  ///< of the class of that name in a picture; empty: of pages alone
  std::string_view light;
  std::string_view dark;
};

constexpr std::array kColours{
    Colour{"surface", "fill", "#ffffff", "#15181d"}, Colour{"raised", "", "#f6f7f9", "#1c2027"},
    Colour{"ink", "fill", "#1d232b", "#e4e7eb"},     Colour{"muted", "fill", "#5b6570", "#9aa4b0"},
    Colour{"grid", "stroke", "#e3e7eb", "#2b313a"},  Colour{"axis", "stroke", "#8b95a1", "#66707c"},
    Colour{"main", "fill", "#3f6f9f", "#6ea3d6"},    Colour{"second", "fill", "#c07a3a", "#dd9c60"},
    Colour{"warn", "fill", "#b3382c", "#ef8377"},    Colour{"good", "", "#2b7a4b", "#6cc393"},
};

// Told apart with all kinds of colour vision: Okabe and Ito, "Color Universal Design", 2008. In the
// dark those that would vanish are lighter.
struct Pair {
  std::string_view light;
  std::string_view dark;
};
constexpr std::array<Pair, kSeriesColours> kSeries{{{"#0072b2", "#3f9bd8"},
                                                    {"#d55e00", "#e8763a"},
                                                    {"#009e73", "#2bc195"},
                                                    {"#cc79a7", "#d990b8"},
                                                    {"#e69f00", "#e69f00"},
                                                    {"#56b4e9", "#8ed0f4"},
                                                    {"#000000", "#e4e7eb"},
                                                    {"#8a6d00", "#b89a3c"}}};

std::string rules(bool dark) {
  std::string text;
  for (const Colour& colour : kColours) {
    if (colour.property.empty()) continue;
    text += fmt::format(".picture .{}{{{}:{}}}\n", colour.name, colour.property,
                        dark ? colour.dark : colour.light);
  }
  for (std::size_t i = 0; i < kSeries.size(); ++i) {
    const std::string_view value = dark ? kSeries[i].dark : kSeries[i].light;
    text += fmt::format(
        ".picture .series{0}{{stroke:{1}}}\n.picture .fill.series{0}{{fill:{1};stroke:none}}\n", i,
        value);
  }
  return text;
}

}  // namespace

std::string picture_style() {
  return ".picture{font:12px system-ui,sans-serif;font-variant-numeric:tabular-nums}\n"
         ".picture .heading{font-size:16px;font-weight:600}\n"
         ".picture .panel-name{font-size:11px;font-weight:600}\n"
         ".picture .small{font-size:10px}\n"
         ".picture .end{text-anchor:end}\n"
         ".picture .middle{text-anchor:middle}\n"
         ".picture .outline{fill:none;stroke-width:2}\n" +
         rules(false) + "@media (prefers-color-scheme:dark){\n" + rules(true) + "}\n";
}

std::string series_class(std::size_t series) {
  return fmt::format("series{}", series % kSeriesColours);
}

std::string page_colours() {
  std::string light;
  std::string dark;
  for (const Colour& colour : kColours) {
    fmt::format_to(std::back_inserter(light), "--{}:{};", colour.name, colour.light);
    fmt::format_to(std::back_inserter(dark), "--{}:{};", colour.name, colour.dark);
  }
  return fmt::format(
      ":root{{color-scheme:light dark;{}}}\n@media (prefers-color-scheme:dark){{:root{{{}}}}}\n",
      light, dark);
}

}  // namespace thalia::cli
