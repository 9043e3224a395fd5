#include "cli/draw/file_growth.h"

#include "cli/tensor/file_regions.h"
#include "inspect/describe_file.h"

namespace thalia::cli {

FileGrowth growth_of(const std::filesystem::path& path, ChainOptions options) {
  // Checking blocks of the tree would read the payloads that share these blocks.
  options.read.verification = Verification::off;
  const inspect::FileFacts facts = inspect::describe_file(path, options);
  FileGrowth growth{.events = parse_growth_history(facts.metadata),
                    .training_steps = facts.progress.steps.value_or(0)};
  if (facts.format != FileFormat::thalia && facts.format != FileFormat::thalia_0_1) return growth;
  for (const ListedRegion& region : regions_of(path, options.read).regions)
    growth.regions.push_back({region.name, region.n_neurons.value_or(0)});
  return growth;
}

}  // namespace thalia::cli
