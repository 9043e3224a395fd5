// Neurons per region over training steps, from a growth history and what regions have now.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/report/svg.h"
#include "thalia/state/metadata.h"

namespace thalia::cli {

struct RegionSize {
  std::string name;
  std::uint64_t neurons;
};

struct GrowthPoint {
  double x;                  ///< a step, or the number of the event if no event has a step
  double neurons;            ///< from here on
  const GrowthEvent* event;  ///< nullptr of the first and the last point
  bool is_pruning;
};

struct GrowthSeries {
  std::string region;
  std::vector<GrowthPoint> points;
};

struct GrowthChart {
  bool by_step = true;  ///< else by the number of the event
  double last_x = 0;    ///< the end of all series
  std::vector<GrowthSeries> series;
  std::size_t left_out = 0;  ///< regions that are smaller than those shown
};

/// A series for each region that `events` name or that has neurons. What a region had before its
/// first event follows from what it has now; for a region that no longer exists, from what the
/// event says. An event without a step is at the step of the one before it. The chart points
/// into `events`.
GrowthChart growth_chart(std::span<const GrowthEvent> events, std::span<const RegionSize> regions,
                         std::uint64_t training_steps);

std::string growth_svg(const GrowthChart& chart, const std::string& heading,
                       SvgPlace place = SvgPlace::document);

}  // namespace thalia::cli
