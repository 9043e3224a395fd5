// Checkpoints of runs are left to RunWriter, which keeps what a run knows of them right.
#pragma once

#include <filesystem>
#include <vector>

namespace thalia::inspect {

/// @throws UsageError (wrong_state) for a file that is a checkpoint of a run.
void require_outside_runs(const std::vector<std::filesystem::path>& files);

}  // namespace thalia::inspect
