// A panel: the name and what the tensor is, bars over a baseline, the ends of the range and where
// zero is. Shares are of all elements, so that panels of pruned tensors tell the truth.
#include "cli/report/histogram_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "cli/print/print.h"
#include "cli/print/tensor_table.h"
#include "cli/report/axis.h"
#include "cli/report/svg.h"

namespace thalia::cli {
namespace {

constexpr double kPanelWidth = 216;
constexpr double kPanelHeight = 136;
constexpr double kPanelBarsTop = 40;
constexpr double kPanelBarsBottom = 112;
constexpr std::size_t kPanelNameLength = 32;
constexpr std::size_t kPanelColumns = 4;
constexpr double kPanelMargin = 24;
constexpr double kPanelGap = 16;
constexpr double kPanelRowGap = 20;
constexpr double kPanelHeader = 96;
constexpr double kPanelFooter = 36;

double share(std::uint64_t part, const TensorStatistics& of) {
  return of.elements == 0 ? 0 : static_cast<double>(part) / static_cast<double>(of.elements);
}

// "f32 768×768, 12 % zero, 3 NaN"
std::string caption_of(const Histogram& histogram) {
  const TensorStatistics& of = histogram.tensor.statistics;
  std::string shape;
  for (unsigned d = 0; d < histogram.tensor.layout.shape.rank(); ++d)
    shape += fmt::format("{}{}", d == 0 ? "" : "×", histogram.tensor.layout.shape[d]);
  std::string text = fmt::format("{} {}", dtype_name(histogram.tensor.layout.dtype),
                                 shape.empty() ? "scalar" : shape);
  if (of.zeros > 0) text += fmt::format(", {} zero", percent_text(share(of.zeros, of)));
  if (of.nan > 0) text += fmt::format(", {} NaN", grouped(of.nan));
  if (of.infinite > 0) text += fmt::format(", {} inf", grouped(of.infinite));
  if (histogram.outside > 0)
    text += fmt::format(", {} beyond", percent_text(share(histogram.outside, of)));
  return text;
}

std::string end_text(double value) {
  return fmt::format("{:.3g}", value);
}

void draw_bars(Svg& svg, const Histogram& histogram) {
  const std::uint64_t most = *std::max_element(histogram.bins.begin(), histogram.bins.end());
  const double width = kPanelWidth / static_cast<double>(histogram.bins.size());
  const double height = kPanelBarsBottom - kPanelBarsTop;
  std::string path;
  for (std::size_t i = 0; i < histogram.bins.size(); ++i) {
    if (histogram.bins[i] == 0) continue;
    // What is there shows, however little it is.
    const double bar =
        std::max(0.75, height * static_cast<double>(histogram.bins[i]) / static_cast<double>(most));
    path += fmt::format("M{} {}v-{}h{}v{}z", svg_number(static_cast<double>(i) * width),
                        svg_number(kPanelBarsBottom), svg_number(bar), svg_number(width - 0.5),
                        svg_number(bar));
  }
  svg.element("path", {{"class", "main"}, {"d", path}});
  const double range = histogram.high - histogram.low;
  const double zero = -histogram.low / range * kPanelWidth;
  constexpr double kNearEnd = 40;  // where its label would touch that of an end
  if (zero > 0 && zero < kPanelWidth) {
    svg.line(zero, kPanelBarsBottom, zero, kPanelBarsBottom + 4, {{"class", "axis"}});
    if (zero > kNearEnd && zero < kPanelWidth - kNearEnd)
      svg.text(zero, kPanelBarsBottom + 15, "0", {{"class", "muted small middle"}});
  }
  svg.text(0, kPanelBarsBottom + 15, end_text(histogram.low), {{"class", "muted small"}});
  svg.text(kPanelWidth, kPanelBarsBottom + 15, end_text(histogram.high),
           {{"class", "muted small end"}});
  svg.text(kPanelWidth, kPanelBarsTop - 3,
           "peak " + percent_text(share(most, histogram.tensor.statistics)),
           {{"class", "muted small end"}});
}

void draw_panel(Svg& svg, const Histogram& histogram) {
  const MeasuredTensor& tensor = histogram.tensor;
  const std::string name =
      tensor.region.empty() ? tensor.name : fmt::format("{}/{}", tensor.region, tensor.name);
  svg.title(name);
  svg.text(0, 11, short_name(name, kPanelNameLength), {{"class", "panel-name ink"}});
  svg.text(0, 25, caption_of(histogram), {{"class", "muted small"}});
  if (histogram.bins.empty()) {
    const bool all_zero = tensor.statistics.zeros > 0;
    svg.text(kPanelWidth / 2, (kPanelBarsTop + kPanelBarsBottom) / 2,
             tensor.statistics.elements == 0 ? "no elements"
             : all_zero                      ? "nothing but zeros"
                                             : "nothing finite",
             {{"class", "muted middle"}});
  } else {
    draw_bars(svg, histogram);
  }
  svg.line(0, kPanelBarsBottom, kPanelWidth, kPanelBarsBottom, {{"class", "axis"}});
}

}  // namespace

std::string histograms_svg(std::span<const Histogram> histograms, const std::string& heading,
                           const std::string& note) {
  const std::size_t columns = std::min(kPanelColumns, std::max<std::size_t>(histograms.size(), 1));
  const std::size_t rows = (histograms.size() + columns - 1) / columns;
  const double width =
      2 * kPanelMargin + kPanelColumns * kPanelWidth + (kPanelColumns - 1) * kPanelGap;
  const double height = kPanelHeader + static_cast<double>(rows) * (kPanelHeight + kPanelRowGap) +
                        (note.empty() ? 8 : kPanelFooter);
  Svg svg(width, height, heading);
  svg.text(kPanelMargin, 30, heading, {{"class", "heading ink"}});
  svg.text(kPanelMargin, 50, kHistogramScale, {{"class", "muted"}});
  svg.text(kPanelMargin, 66, kHistogramBeyond, {{"class", "muted"}});
  for (std::size_t i = 0; i < histograms.size(); ++i) {
    const std::size_t row = i / columns;
    const double x = kPanelMargin + static_cast<double>(i % columns) * (kPanelWidth + kPanelGap);
    const double y = kPanelHeader + static_cast<double>(row) * (kPanelHeight + kPanelRowGap);
    const MeasuredTensor& tensor = histograms[i].tensor;
    svg.open("g", {{"class", "panel"},
                   {"data-region", tensor.region},
                   {"data-name", tensor.name},
                   {"data-inside", fmt::format("{}", histograms[i].inside())},
                   {"transform", fmt::format("translate({} {})", svg_number(x), svg_number(y))}});
    draw_panel(svg, histograms[i]);
    svg.close();
  }
  if (!note.empty()) svg.text(kPanelMargin, height - 16, note, {{"class", "muted"}});
  return svg.finish();
}

std::string histogram_panel(const Histogram& histogram) {
  const MeasuredTensor& tensor = histogram.tensor;
  Svg svg(kPanelWidth, kPanelHeight, "Histogram of " + shown_name(tensor.region, tensor.name),
          SvgPlace::page);
  draw_panel(svg, histogram);
  return svg.finish();
}

}  // namespace thalia::cli
