#include "cli/report/chain_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "cli/print/print.h"
#include "cli/report/axis.h"

namespace thalia::cli {
namespace {

constexpr double kChainWidth = 960;
constexpr double kChainHeight = 400;
constexpr double kChainLeft = 84;
constexpr double kChainRight = 936;
constexpr double kChainTop = 84;
constexpr double kChainBottom = 336;
constexpr double kChainWidestBar = 48;
constexpr std::size_t kChainMostLabels = 12;  // of bars, so that they do not touch

class ChainDrawing {
 public:
  ChainDrawing(std::span<const LinkFacts> links, const std::string& heading, SvgPlace place)
      : links_(links.rbegin(), links.rend()), svg_(kChainWidth, kChainHeight, heading, place, 36) {
    for (const LinkFacts& link : links_) {
      most_ = std::max(most_, static_cast<double>(link.disk_bytes));
      total_ += link.disk_bytes;
      by_step_ = by_step_ && link.training_steps.has_value();
    }
    for (std::size_t i = 1; by_step_ && i < links_.size(); ++i)
      by_step_ = *links_[i - 1].training_steps < *links_[i].training_steps;
    by_step_ = by_step_ && links_.size() > 1;
    distance_ = byte_tick_distance(most_);
    if (place == SvgPlace::document) svg_.text(24, 30, heading, {{"class", "heading ink"}});
  }

  std::string draw() {
    legend();
    axes();
    for (std::size_t i = 0; i < links_.size(); ++i) bar(i);
    svg_.line(kChainLeft, kChainBottom, kChainRight, kChainBottom, {{"class", "axis"}});
    return svg_.finish();
  }

 private:
  double place(std::size_t i) const {
    const double room = kChainRight - kChainLeft - 2 * kChainWidestBar;
    if (!by_step_)
      return kChainLeft + (kChainRight - kChainLeft) * (static_cast<double>(i) + 0.5) /
                              static_cast<double>(links_.size());
    const auto first = static_cast<double>(*links_.front().training_steps);
    const auto last = static_cast<double>(*links_.back().training_steps);
    return kChainLeft + kChainWidestBar +
           (static_cast<double>(*links_[i].training_steps) - first) / (last - first) * room;
  }
  double y(double bytes) const { return kChainBottom - bytes / most_ * (kChainBottom - kChainTop); }

  double bar_width() const {
    double width = kChainWidestBar;
    for (std::size_t i = 1; i < links_.size(); ++i)
      width = std::min(width, 0.7 * (place(i) - place(i - 1)));
    return std::max(width, 1.5);
  }

  void legend() {
    svg_.rect(24, 44, 10, 10, {{"class", "main"}});
    svg_.text(40, 53, "full", {{"class", "ink"}});
    svg_.rect(76, 44, 10, 10, {{"class", "second"}});
    svg_.text(92, 53, "delta", {{"class", "ink"}});
    svg_.text(140, 53,
              fmt::format("{} in {}", human_bytes(total_), counted(links_.size(), "file", "files")),
              {{"class", "muted"}});
  }

  void axes() {
    svg_.open("g", {{"class", "y-axis"}, {"stroke-width", "1"}});
    for (double bytes = 0; bytes <= most_ * (1 + 1e-9); bytes += distance_) {
      svg_.line(kChainLeft, y(bytes), kChainRight, y(bytes),
                {{"class", "grid"}, {"data-value", fmt::format("{:.0f}", bytes)}});
      svg_.text(kChainLeft - 8, y(bytes) + 4, human_bytes(static_cast<std::uint64_t>(bytes)),
                {{"class", "muted end"}});
    }
    svg_.close();
    svg_.text(20, (kChainTop + kChainBottom) / 2, "size on disk",
              {{"class", "muted middle"},
               {"transform",
                fmt::format("rotate(-90 20 {})", svg_number((kChainTop + kChainBottom) / 2))}});
    svg_.text((kChainLeft + kChainRight) / 2, kChainBottom + 48,
              by_step_ ? "training step" : "training step (not to scale)",
              {{"class", "muted middle"}});
  }

  void bar(std::size_t i) {
    const LinkFacts& link = links_[i];
    const auto bytes = static_cast<double>(link.disk_bytes);
    const double width = bar_width();
    const double x = place(i);
    const std::string step = link.training_steps ? grouped(*link.training_steps) : "?";
    svg_.open("g",
              {{"class", "link"},
               {"data-kind", std::string(link.kind())},
               {"data-bytes", fmt::format("{}", link.disk_bytes)},
               {"data-step", link.training_steps ? fmt::format("{}", *link.training_steps) : ""}});
    const std::string name = std::filesystem::path(link.name).filename().string();
    svg_.title(
        fmt::format("{}: {}, step {}, {}", name, link.kind(), step, human_bytes(link.disk_bytes)));
    const double height = std::max(kChainBottom - y(bytes), 0.75);
    svg_.rect(x - width / 2, kChainBottom - height, width, height,
              {{"class", link.is_delta ? "second" : "main"}});
    if (links_.size() <= kChainMostLabels)
      svg_.text(x, kChainBottom - height - 6, human_bytes(link.disk_bytes),
                {{"class", "ink middle small"}});
    // Each step that does not touch the one before it.
    constexpr double kStepRoom = 64;
    if (i == 0 || x - last_step_ >= kStepRoom) {
      svg_.line(x, kChainBottom, x, kChainBottom + 5, {{"class", "axis"}});
      svg_.text(x, kChainBottom + 20, step, {{"class", "muted middle"}});
      last_step_ = x;
    }
    svg_.close();
  }

  std::vector<LinkFacts> links_;
  bool by_step_ = true;
  double most_ = 1;
  double distance_ = 1;
  double last_step_ = 0;
  std::uint64_t total_ = 0;
  Svg svg_;
};

}  // namespace

std::string chain_svg(std::span<const LinkFacts> links, const std::string& heading,
                      SvgPlace place) {
  return ChainDrawing(links, heading, place).draw();
}

}  // namespace thalia::cli
