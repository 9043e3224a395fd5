// The sample brain, saved as a user would.
#include "parts.h"
#include "state/brain/brain_sample.h"
#include "thalia/state/checkpoint.h"

namespace witness::state {

using namespace thalia;

void run(const std::filesystem::path& folder) {
  // The digests of this kind need nothing but Python's standard library.
  BrainCheckpoint::save(test::sample_brain(), folder / "state.thalia",
                        {.save = {.leaves = LeafAlgorithm::sha256}});
}

}  // namespace witness::state
