// The colours of pictures and pages, each for light and for dark surroundings.
#pragma once

#include <cstddef>
#include <string>

namespace thalia::cli {

/// Rules for the classes that pictures use: surface, ink, muted, grid, axis, main, second, warn,
/// and what series_class() returns. Dark ones under prefers-color-scheme; a program that does not
/// know that, as rsvg-convert, draws the light ones.
std::string picture_style();

/// How many series are told apart by their colours.
inline constexpr std::size_t kSeriesColours = 8;
/// The class of a series' line; "fill series0" is that of a shape in its colour.
std::string series_class(std::size_t series);

/// Custom properties for a page: --surface, --raised, --ink, --muted, --grid, --axis, --main,
/// --second, --warn, --good.
std::string page_colours();

}  // namespace thalia::cli
