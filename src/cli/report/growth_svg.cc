// Draws the growth chart. Steps and neurons are scaled to the drawing here alone; numbers have two
// decimals, so that equal charts are equal bytes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "cli/print/growth_text.h"
#include "cli/print/print.h"
#include "cli/report/axis.h"
#include "cli/report/growth_chart.h"
#include "cli/report/svg.h"
#include "cli/report/theme.h"

namespace thalia::cli {
namespace {

constexpr double kGrowthWidth = 960;
constexpr double kGrowthLeft = 80;
constexpr double kGrowthRight = 720;  // the legend comes after it
constexpr double kGrowthTop = 50;
constexpr double kGrowthBottom = 430;
constexpr double kGrowthHeight = 490;
constexpr std::size_t kLegendLength = 26;  // characters of a name

// The second eight regions have the same colours, dashed.
std::string dashes(std::size_t i) {
  return i < kSeriesColours ? "none" : "6 3";
}

class Drawing {
 public:
  Drawing(const GrowthChart& chart, const std::string& heading, SvgPlace place)
      : chart_(chart), svg_(kGrowthWidth, kGrowthHeight, heading, place, 36) {
    for (const GrowthSeries& series : chart.series) {
      for (const GrowthPoint& point : series.points) most_ = std::max(most_, point.neurons);
    }
    const double distance = tick_distance(most_, 1);
    most_ = std::max(1.0, std::ceil(most_ / distance)) * distance;
    if (place == SvgPlace::document) svg_.text(24, 28, heading, {{"class", "heading ink"}});
  }

  std::string draw() {
    axes();
    for (std::size_t i = 0; i < chart_.series.size(); ++i) curve(chart_.series[i], i);
    legend();
    return svg_.finish();
  }

 private:
  double x(double step) const {
    return kGrowthLeft + step / last_x() * (kGrowthRight - kGrowthLeft);
  }
  double y(double neurons) const {
    return kGrowthBottom - neurons / most_ * (kGrowthBottom - kGrowthTop);
  }
  double last_x() const { return std::max(chart_.last_x, 1.0); }

  void axes() {
    svg_.open("g", {{"class", "y-axis"}, {"stroke-width", "1"}});
    const double rows = tick_distance(most_, 1);
    for (double value = 0; value <= most_ * (1 + 1e-9); value += rows) {
      svg_.line(kGrowthLeft, y(value), kGrowthRight, y(value),
                {{"class", "grid"}, {"data-value", fmt::format("{:.0f}", value)}});
      svg_.text(kGrowthLeft - 8, y(value) + 4, whole_number(value), {{"class", "muted end"}});
    }
    svg_.text(20, (kGrowthTop + kGrowthBottom) / 2, "neurons",
              {{"class", "muted middle"},
               {"transform",
                fmt::format("rotate(-90 20 {})", svg_number((kGrowthTop + kGrowthBottom) / 2))}});
    svg_.close().open("g", {{"class", "x-axis"}, {"stroke-width", "1"}});
    const double columns = tick_distance(last_x(), 1);
    for (double value = 0; value <= last_x() * (1 + 1e-9); value += columns) {
      svg_.line(x(value), kGrowthBottom, x(value), kGrowthBottom + 5,
                {{"class", "axis"}, {"data-value", fmt::format("{:.0f}", value)}});
      svg_.text(x(value), kGrowthBottom + 20, whole_number(value), {{"class", "muted middle"}});
    }
    svg_.element("path", {{"d", fmt::format("M{0} {1}V{2}H{3}", svg_number(kGrowthLeft),
                                            svg_number(kGrowthTop), svg_number(kGrowthBottom),
                                            svg_number(kGrowthRight))},
                          {"class", "axis"},
                          {"fill", "none"}});
    svg_.text((kGrowthLeft + kGrowthRight) / 2, kGrowthBottom + 42,
              chart_.by_step ? "training step" : "event (the history tells no steps)",
              {{"class", "muted middle"}});
    svg_.close();
  }

  void curve(const GrowthSeries& series, std::size_t i) {
    svg_.open("g", {{"class", "region"}, {"data-region", series.region}});
    svg_.title(series.region);
    std::string points;
    const auto add = [&](double step, double neurons) {
      points += fmt::format("{}{},{}", points.empty() ? "" : " ", svg_number(x(step)),
                            svg_number(y(neurons)));
    };
    double before = series.points.front().neurons;
    for (const GrowthPoint& point : series.points) {
      // Growth happens at one step: the curve goes level up to it, then straight up or down.
      if (point.neurons != before) add(point.x, before);
      add(point.x, point.neurons);
      before = point.neurons;
    }
    svg_.element("polyline", {{"points", points},
                              {"class", "outline " + series_class(i)},
                              {"stroke-dasharray", dashes(i)}});
    for (const GrowthPoint& point : series.points) {
      if (point.event != nullptr) marker(point, "fill " + series_class(i));
    }
    svg_.close();
  }

  // A dot where a region grew, a triangle on its tip where it was pruned.
  void marker(const GrowthPoint& point, const std::string& fill) {
    const double at_x = x(point.x);
    const double at_y = y(point.neurons);
    svg_.open("g", {{"class", point.is_pruning ? "pruning" : "growth"},
                    {"data-x", fmt::format("{:.0f}", point.x)},
                    {"data-neurons", fmt::format("{:.0f}", point.neurons)}});
    const GrowthEvent& event = *point.event;
    svg_.title(fmt::format("{}: {} {}{}", growth_time(event), event.region, growth_change(event),
                           event.reason.empty() ? "" : " (" + event.reason + ")"));
    if (point.is_pruning) {
      triangle(at_x, at_y, fill);
    } else {
      dot(at_x, at_y, fill);
    }
    svg_.close();
  }

  void dot(double at_x, double at_y, const std::string& fill) {
    svg_.element(
        "circle",
        {{"cx", svg_number(at_x)}, {"cy", svg_number(at_y)}, {"r", "3.5"}, {"class", fill}});
  }

  void triangle(double at_x, double at_y, const std::string& fill) {
    svg_.element("path",
                 {{"d", fmt::format("M{} {}l-6 -10h12z", svg_number(at_x), svg_number(at_y))},
                  {"class", fill}});
  }

  void legend() {
    constexpr double kRow = 20;
    const double from = kGrowthRight + 20;
    double row = kGrowthTop + 6;
    svg_.open("g", {{"class", "legend"}});
    for (std::size_t i = 0; i < chart_.series.size(); ++i, row += kRow) {
      svg_.line(from, row, from + 24, row,
                {{"class", "outline " + series_class(i)}, {"stroke-dasharray", dashes(i)}});
      svg_.text(from + 32, row + 4, legend_name(chart_.series[i].region), {{"class", "ink"}});
    }
    if (chart_.left_out > 0) {
      svg_.text(from, row + 4,
                "and " + counted(chart_.left_out, "smaller region", "smaller regions"),
                {{"class", "muted"}});
      row += kRow;
    }
    dot(from + 12, row, "muted");
    svg_.text(from + 32, row + 4, "growth", {{"class", "ink"}});
    triangle(from + 12, row + kRow + 5, "muted");
    svg_.text(from + 32, row + kRow + 4, "pruning", {{"class", "ink"}});
    svg_.close();
  }

  static std::string legend_name(const std::string& name) {
    if (name.empty()) return "(no region)";
    return short_name(name, kLegendLength);
  }

  const GrowthChart& chart_;
  double most_ = 0;
  Svg svg_;
};

}  // namespace

std::string growth_svg(const GrowthChart& chart, const std::string& heading, SvgPlace place) {
  return Drawing(chart, heading, place).draw();
}

}  // namespace thalia::cli
