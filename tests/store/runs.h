// Runs of tests: small ones, and checkpoints in them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "support/files.h"
#include "support/sample.h"
#include "thalia/store.h"

namespace thalia::test {

/// One phase, "train", full files of .thalia alone, unless the caller changes it.
RunConfig small_config();
/// The same of opaque bytes, of extension "pt".
RunConfig bytes_config();

/// A folder with a run in it.
class TemporaryRun {
 public:
  explicit TemporaryRun(const RunConfig& config = small_config());
  std::filesystem::path path() const { return folder_ / "run"; }
  std::filesystem::path phase(std::string_view name = "train") const {
    return path() / name / "checkpoints";
  }
  /// Without waiting for the disk.
  RunWriter writer(RunWriterOptions options = {}) const;
  Run run() const { return Run::open(path()); }

 private:
  TemporaryFolder folder_;
};

/// A state of two tensors that depends on the step in a part of one.
Sample state_of_step(std::uint64_t step);
/// The same as a brain; with `all_changes`, nothing is as in another step.
BrainState brain_of(std::uint64_t step, bool all_changes = false);
StoredCheckpoint save_step(RunWriter& writer, std::uint64_t step, const SaveInfo& info = {});
std::vector<std::uint64_t> steps_of(const std::vector<CheckpointEntry>& entries);

/// Changes a byte in the middle of a file.
void damage(const std::filesystem::path& path);

}  // namespace thalia::test
