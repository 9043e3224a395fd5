// Runs of the specification's three phases, with records of a few tensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "boost_test.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/state/delta.h"
#include "thalia/state/value.h"
#include "thalia/store/pool.h"
#include "thalia/store/run.h"
#include "thalia/store/transition.h"
#include "thalia/store/writer.h"

namespace thalia::test {

/// A value of its own for each seed.
Tensor numbered_tensor(DType dtype, const Shape& shape, unsigned seed);

struct Record {
  unsigned seed = 1;
  std::uint64_t step = 100;
  int phase = 1;
  double feature_dropout = 0;
  bool has_teacher = false;
  bool has_pool_metadata = false;
};
/// model_record/stem (bf16), model_record/head (f32), optimizer_record/stem.exp_avg (f32),
/// scheduler_record/last (f64), rng_state/words (u64); the other keys are members of the metadata.
StateSource record_of(const Record& record);

/// Nothing waits for the disk.
RunWriterOptions quick_writing(std::vector<std::string>* warnings = nullptr);

/// A run in a folder of its own.
class HydraRun {
 public:
  explicit HydraRun(RunConfig config = hydra_config());

  std::filesystem::path path() const { return folder_ / "run"; }
  std::filesystem::path pool() const { return path() / "phase3" / "opponent_pool"; }
  RunWriter writer(std::vector<std::string>* warnings = nullptr) const {
    return RunWriter(path(), quick_writing(warnings));
  }
  Run run() const { return Run::open(path()); }

  /// Saves a record of phase 3 at a step.
  static void save(RunWriter& writer, std::uint64_t step, unsigned seed = 1);
  /// Phase 1 with a best checkpoint that is promoted; and phase 2 after it.
  static void play_phase1(RunWriter& writer);
  static void play_phase2(RunWriter& writer, double feature_dropout = 0);

 private:
  TemporaryFolder folder_;
};

/// The specification's plans.
inline TransitionPlan to_distillation() {
  return hydra_transitions().at(0);
}
inline TransitionPlan to_league() {
  return hydra_transitions().at(1);
}
/// What a phase's folder has beside those of its checkpoints and its pool.
std::vector<std::string> begun_files(const HydraRun& run, const std::string& phase);

/// Reads a tensor that is called "region/tensor".
Tensor read_tensor(const std::filesystem::path& file, const std::string& name);
std::vector<std::string> tensor_names(const std::filesystem::path& file);
Value metadata_of(const std::filesystem::path& file);
bool has_file(const std::filesystem::path& folder, std::string_view name);

}  // namespace thalia::test
