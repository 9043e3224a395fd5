#include "cli/draw/file_growth.h"

#include <vector>

#include "cli/draw/growth_chart.h"
#include "cli/tensor/file_regions.h"

namespace thalia::cli {

GrowthPicture growth_picture(const inspect::FileFacts& facts, std::span<const GrowthEvent> events,
                             ReadOptions options, const std::string& heading, SvgPlace place) {
  // Checking blocks of the tree would read the payloads that share these blocks.
  options.verification = Verification::off;
  std::vector<RegionSize> regions;
  if (facts.format == FileFormat::thalia || facts.format == FileFormat::thalia_0_1) {
    for (const ListedRegion& region : regions_of(facts.path, options).regions)
      regions.push_back({region.name, region.n_neurons.value_or(0)});
  }
  const GrowthChart chart = growth_chart(events, regions, facts.progress.steps.value_or(0));
  return {growth_svg(chart, heading, place), chart.series.size()};
}

}  // namespace thalia::cli
