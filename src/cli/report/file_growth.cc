#include "cli/report/file_growth.h"

#include <vector>

#include "cli/report/growth_chart.h"

namespace thalia::cli {

GrowthPicture growth_picture(const AnyFile& file, std::span<const GrowthEvent> events,
                             std::uint64_t training_steps, const std::string& heading,
                             SvgPlace place) {
  std::vector<RegionSize> regions;
  for (std::size_t i = 0; file.has_regions() && i < file.region_count(); ++i) {
    const RegionFacts region = file.region(i);
    regions.push_back({std::string(region.name), region.n_neurons.value_or(0)});
  }
  const GrowthChart chart = growth_chart(events, regions, training_steps);
  return {growth_svg(chart, heading, place), chart.series.size()};
}

}  // namespace thalia::cli
