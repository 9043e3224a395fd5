// Whether a checkpoint is saved as a delta, and against which file. docs/format/store.md, "Deltas".
#pragma once

#include <optional>
#include <string>

#include "store/run/run_folder.h"

namespace thalia::store {

struct DeltaChoice {
  std::string base;           ///< file in the phase's folder
  unsigned depth = 1;         ///< that the delta will have
  std::uint64_t chain_bytes;  ///< of the files that it will be based on
  std::uint64_t full_bytes;   ///< of the full file at their end
};

/// nullopt: a full file. By the latest checkpoint and its chain; of a step that is replaced there
/// is no delta.
std::optional<DeltaChoice> choose_delta(const RunConfig& config, const RunListing& listing,
                                        const std::string& file);
/// True of a delta that makes its chain dearer to read than the policy allows.
bool is_too_dear(const DeltaPolicy& policy, const DeltaChoice& choice, std::uint64_t delta_bytes,
                 std::optional<double> read_factor);

/// Time of reading a chain by that of reading its full file, both from the disk, of a sample;
/// nullopt if it cannot be measured.
std::optional<double> measure_read_factor(const RunFiles& files,
                                          const std::filesystem::path& delta);

}  // namespace thalia::store
