#include "cli/draw/file_growth.h"

#include "inspect/describe_file.h"
#include "inspect/file_tensors.h"

namespace thalia::cli {

GrowthPicture growth_picture(const inspect::FileFacts& facts, std::span<const GrowthEvent> events,
                             ReadOptions options, const std::string& heading, SvgPlace place) {
  // Checking blocks of the tree would read the payloads that share these blocks.
  options.read.verification = Verification::off;
  const AnyFile file = inspect::open_stored(path, options);
  const inspect::DescribedFile facts = inspect::describe_file(file);
  FileGrowth growth{.events = parse_growth_history(facts.metadata),
                    .training_steps = facts.progress.steps.value_or(0)};
  for (std::size_t i = 0; file.has_regions() && i < file.region_count(); ++i) {
    const RegionFacts region = file.region(i);
    growth.regions.push_back({std::string(region.name), region.n_neurons.value_or(0)});
  }
  return growth;
}

}  // namespace thalia::cli
