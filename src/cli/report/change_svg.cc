// Bars are linear from zero, since their length is what is compared; the numbers beside them tell
// the small ones apart.
#include "cli/report/change_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/print/print.h"
#include "cli/report/axis.h"
#include "cli/tensor/largest.h"

namespace thalia::cli {
namespace {

constexpr double kChangeWidth = 960;
constexpr double kChangeLeft = 296;
constexpr double kChangeRight = 840;  // the numbers come after the bars
constexpr double kChangeMargin = 24;
constexpr double kChangeHeader = 104;
constexpr double kChangeRow = 20;
constexpr double kChangeBar = 12;
constexpr double kChangeFooter = 40;
constexpr std::size_t kChangeNameLength = 38;

double greatest_finite(std::span<const TensorChange> changes) {
  double greatest = 0;
  for (const TensorChange& change : changes) {
    if (change.relative && std::isfinite(*change.relative))
      greatest = std::max(greatest, *change.relative);
  }
  return greatest;
}

// The share of the greatest finite change: 0 if there is none, 1 for an infinite one.
double share_of(const TensorChange& change, double greatest) {
  if (!change.relative || *change.relative == 0) return 0;
  return std::isfinite(*change.relative) ? *change.relative / greatest : 1;
}

}  // namespace

std::string change_text(const TensorChange& change) {
  if (change.change != Change::changed) return std::string(change_name(change.change));
  if (!change.relative) return change.not_compared;
  if (*change.relative == 0) return "same";
  return std::isfinite(*change.relative) ? percent_text(*change.relative) : "from zero";
}

std::vector<TensorChange> most_changed(std::vector<TensorChange> changes, std::size_t most) {
  std::vector<double> sizes;
  // What cannot be a number is worth a look, too.
  for (const TensorChange& change : changes)
    sizes.push_back(change.relative.value_or(std::numeric_limits<double>::infinity()));
  const std::vector<bool> taken = among_largest(sizes, most);
  std::size_t place = 0;
  std::erase_if(changes, [&](const TensorChange&) { return !taken[place++]; });
  return changes;
}

std::string changes_svg(std::span<const TensorChange> changes, const std::string& heading,
                        const std::string& note, SvgPlace place) {
  const double bottom = kChangeHeader + static_cast<double>(changes.size()) * kChangeRow + 4;
  Svg svg(kChangeWidth, bottom + (note.empty() ? 16 : kChangeFooter), heading, place, 36);
  if (place == SvgPlace::document) svg.text(kChangeMargin, 30, heading, {{"class", "heading ink"}});
  svg.text(kChangeMargin, 50,
           "Relative change of each tensor, norm(B − A) / norm(A), in the file's order",
           {{"class", "muted"}});
  // The axis ends at the greatest change: its bar is as long as there is room.
  const double most = greatest_finite(changes);
  svg.open("g", {{"class", "x-axis"}, {"stroke-width", "1"}});
  if (most > 0) {
    const double distance = tick_distance(most);
    for (int i = 0; i * distance <= most * (1 + 1e-9); ++i) {
      const double x = kChangeLeft + i * distance / most * (kChangeRight - kChangeLeft);
      svg.line(x, kChangeHeader - 8, x, bottom,
               {{"class", "grid"}, {"data-value", fmt::format("{:g}", i * distance)}});
      svg.text(x, kChangeHeader - 14, percent_text(i * distance),
               {{"class", "muted middle small"}});
    }
  }
  svg.line(kChangeLeft, kChangeHeader - 8, kChangeLeft, bottom, {{"class", "axis"}});
  svg.close();
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const TensorChange& change = changes[i];
    const double y = kChangeHeader + static_cast<double>(i) * kChangeRow;
    const std::string name =
        change.region.empty() ? change.name : fmt::format("{}/{}", change.region, change.name);
    const double length = share_of(change, most) * (kChangeRight - kChangeLeft);
    svg.open("g", {{"class", "change"},
                   {"data-name", name},
                   {"data-change", std::string(change_name(change.change))},
                   {"data-relative", change.relative ? fmt::format("{}", *change.relative) : ""}});
    svg.title(fmt::format("{}: {}", name, change_text(change)));
    svg.text(kChangeLeft - 10, y + 13, short_name(name, kChangeNameLength), {{"class", "ink end"}});
    if (length > 0) {
      const bool is_infinite = !std::isfinite(*change.relative);
      svg.rect(kChangeLeft, y + (kChangeRow - kChangeBar) / 2 - 1, std::max(length, 0.75),
               kChangeBar, {{"class", is_infinite ? "second" : "main"}});
    }
    svg.text(kChangeLeft + length + 8, y + 13, change_text(change), {{"class", "muted"}});
    svg.close();
  }
  if (!note.empty())
    svg.text(kChangeMargin, bottom + kChangeFooter - 14, note, {{"class", "muted"}});
  return svg.finish();
}

}  // namespace thalia::cli
