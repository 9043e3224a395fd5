// Draws the growth chart. Steps and neurons are scaled to the drawing here alone; numbers have two
// decimals, so that equal charts are equal bytes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "cli/print/growth_chart.h"
#include "cli/print/growth_text.h"
#include "cli/print/print.h"
#include "cli/print/svg.h"

namespace thalia::cli {
namespace {

constexpr double kWidth = 960;
constexpr double kLeft = 80;
constexpr double kRight = 720;  // the legend stands behind it
constexpr double kTop = 50;
constexpr double kBottom = 430;
constexpr double kHeight = 490;
constexpr std::size_t kLegendLength = 26;  // characters of a name

// Told apart with all kinds of colour vision: Okabe and Ito, "Color Universal Design", 2008.
constexpr std::array<std::string_view, 8> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                   "#e69f00", "#56b4e9", "#000000", "#8a6d00"};

std::string colour(std::size_t i) {
  return std::string(kColours[i % kColours.size()]);
}

// The second eight regions have the same colours, dashed.
std::string dashes(std::size_t i) {
  return i < kColours.size() ? "none" : "6 3";
}

// 1, 2 or 5 times a power of ten, at least 1, so that about six of them make up `range`.
double tick_distance(double range) {
  const double rough = std::max(range / 6, 1.0);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

std::string whole_number(double value) {
  // Beyond this, digits would not fit the margin, and llround() would end at 2^63.
  constexpr double kGrouped = 1e15;
  return value < kGrouped ? grouped(static_cast<std::uint64_t>(std::llround(value)))
                          : fmt::format("{:g}", value);
}

class Drawing {
 public:
  Drawing(const GrowthChart& chart, const std::string& heading)
      : chart_(chart), svg_(kWidth, kHeight) {
    for (const GrowthSeries& series : chart.series) {
      for (const GrowthPoint& point : series.points) most_ = std::max(most_, point.neurons);
    }
    const double distance = tick_distance(most_);
    most_ = std::max(1.0, std::ceil(most_ / distance)) * distance;
    svg_.title(heading);
    svg_.text(kLeft, 28, heading, {{"font-size", "16"}, {"font-weight", "bold"}});
  }

  std::string draw() {
    axes();
    for (std::size_t i = 0; i < chart_.series.size(); ++i) curve(chart_.series[i], i);
    legend();
    return svg_.finish();
  }

 private:
  double x(double step) const { return kLeft + step / last_x() * (kRight - kLeft); }
  double y(double neurons) const { return kBottom - neurons / most_ * (kBottom - kTop); }
  double last_x() const { return std::max(chart_.last_x, 1.0); }

  void axes() {
    svg_.open("g", {{"class", "y-axis"}, {"stroke-width", "1"}});
    const double rows = tick_distance(most_);
    for (double value = 0; value <= most_ * (1 + 1e-9); value += rows) {
      svg_.element("line", {{"x1", svg_number(kLeft)},
                            {"x2", svg_number(kRight)},
                            {"y1", svg_number(y(value))},
                            {"y2", svg_number(y(value))},
                            {"stroke", "#dddddd"},
                            {"data-value", fmt::format("{:.0f}", value)}});
      svg_.text(kLeft - 8, y(value) + 4, whole_number(value), {{"text-anchor", "end"}});
    }
    svg_.text(20, (kTop + kBottom) / 2, "neurons",
              {{"text-anchor", "middle"},
               {"transform", fmt::format("rotate(-90 20 {})", svg_number((kTop + kBottom) / 2))}});
    svg_.close().open("g", {{"class", "x-axis"}, {"stroke-width", "1"}});
    const double columns = tick_distance(last_x());
    for (double value = 0; value <= last_x() * (1 + 1e-9); value += columns) {
      svg_.element("line", {{"x1", svg_number(x(value))},
                            {"x2", svg_number(x(value))},
                            {"y1", svg_number(kBottom)},
                            {"y2", svg_number(kBottom + 5)},
                            {"stroke", "#444444"},
                            {"data-value", fmt::format("{:.0f}", value)}});
      svg_.text(x(value), kBottom + 20, whole_number(value), {{"text-anchor", "middle"}});
    }
    svg_.element("path", {{"d", fmt::format("M{0} {1}V{2}H{3}", svg_number(kLeft), svg_number(kTop),
                                            svg_number(kBottom), svg_number(kRight))},
                          {"fill", "none"},
                          {"stroke", "#444444"}});
    svg_.text((kLeft + kRight) / 2, kBottom + 42,
              chart_.by_step ? "training step" : "event (the history tells no steps)",
              {{"text-anchor", "middle"}});
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
                              {"fill", "none"},
                              {"stroke", colour(i)},
                              {"stroke-width", "2"},
                              {"stroke-dasharray", dashes(i)}});
    for (const GrowthPoint& point : series.points) {
      if (point.event != nullptr) marker(point, colour(i));
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
        {{"cx", svg_number(at_x)}, {"cy", svg_number(at_y)}, {"r", "3.5"}, {"fill", fill}});
  }

  void triangle(double at_x, double at_y, const std::string& fill) {
    svg_.element("path",
                 {{"d", fmt::format("M{} {}l-6 -10h12z", svg_number(at_x), svg_number(at_y))},
                  {"fill", fill},
                  {"stroke", "#ffffff"}});
  }

  void legend() {
    constexpr double kRow = 20;
    const double from = kRight + 20;
    double row = kTop + 6;
    svg_.open("g", {{"class", "legend"}});
    for (std::size_t i = 0; i < chart_.series.size(); ++i, row += kRow) {
      svg_.element("line", {{"x1", svg_number(from)},
                            {"x2", svg_number(from + 24)},
                            {"y1", svg_number(row)},
                            {"y2", svg_number(row)},
                            {"stroke", colour(i)},
                            {"stroke-width", "2"},
                            {"stroke-dasharray", dashes(i)}});
      svg_.text(from + 32, row + 4, legend_name(chart_.series[i].region));
    }
    if (chart_.left_out > 0) {
      svg_.text(from, row + 4,
                "and " + counted(chart_.left_out, "smaller region", "smaller regions"));
      row += kRow;
    }
    dot(from + 12, row, "#666666");
    svg_.text(from + 32, row + 4, "growth");
    triangle(from + 12, row + kRow + 5, "#666666");
    svg_.text(from + 32, row + kRow + 4, "pruning");
    svg_.close();
  }

  static std::string legend_name(const std::string& name) {
    if (name.empty()) return "(no region)";
    if (name.size() <= kLegendLength) return name;
    std::size_t length = kLegendLength - 3;
    while (length > 0 && (static_cast<unsigned char>(name[length]) & 0xC0) == 0x80) --length;
    return name.substr(0, length) + "...";
  }

  const GrowthChart& chart_;
  double most_ = 0;
  Svg svg_;
};

}  // namespace

std::string growth_svg(const GrowthChart& chart, const std::string& heading) {
  return Drawing(chart, heading).draw();
}

}  // namespace thalia::cli
