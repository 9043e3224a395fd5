// How a run is laid out and kept: its phases, their metrics and retention, the pool. Read from
// run.toml or run.json in the run's folder.
//
//   thalia::RunConfig config = thalia::hydra_config();
//   config.phases[0].retention.keep_every_steps = 100'000;
//   thalia::create_run("runs/20260115_143022_a1b2c3d4", config);
//
// docs/format/store.md, "Configuration".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thalia/store/retention.h"

namespace thalia {

/// What a phase's `best` goes by.
struct Metric {
  std::string name;  ///< "validation_loss"
  Direction direction = Direction::min;
  friend bool operator==(const Metric&, const Metric&) = default;
};

struct PhaseConfig {
  /// The name of its folder, and a part of its files' names: letters, digits, '-', '.' and '_'.
  std::string name;
  std::optional<Metric> metric{};   ///< nullopt: no checkpoint of the phase is its best
  std::string gate{};               ///< what promote() calls its best: "bc_best". Empty: NAME_best
  std::uint64_t save_interval = 0;  ///< steps between two saves, for is_due(); 0: any
  RetentionPolicy retention{};
  /// Keys that a record of this phase has in addition to those of the run.
  std::vector<std::string> required_keys{};

  std::string gate_name() const { return gate.empty() ? name + "_best" : gate; }
  /// True of steps at which a checkpoint is to be saved.
  bool is_due(std::uint64_t step) const noexcept {
    return save_interval == 0 || (step != 0 && step % save_interval == 0);
  }
};

/// When a checkpoint is saved as a delta against the one before it. A full file is saved if
/// there is none to take a delta against.
struct DeltaPolicy {
  enum class Kind {
    never,  ///< full files only
    every,  ///< a full file at each full_every-th save
    cost,   ///< a full file once the chain would cost more than max_cost
  };
  Kind kind = Kind::cost;
  unsigned full_every = 10;  ///< 2 to 256: one full file and so many deltas less one
  /// What reading a checkpoint may cost, in full reads: the bytes of its chain by those of its full
  /// file, and the time of reading it, as measured, by that of a compressed full file. More than 1.
  double max_cost = 1.5;
  bool pack = true;  ///< small deltas, as of DeltaOptions

  friend bool operator==(const DeltaPolicy&, const DeltaPolicy&) = default;
};

/// A pool of earlier versions of the model, stripped to what inference needs.
struct PoolConfig {
  std::string phase;                     ///< whose folder the pool's lies in
  std::string folder = "opponent_pool";  ///< its name
  std::uint32_t keep = 20;               ///< versions, anchors not counted; 0: all
  std::uint32_t cache = 5;               ///< models that PoolCache holds
  /// Sigma of a new model is at least this: a third of OpenSkill's 25/3.
  double sigma_floor = 25.0 / 9.0;
  /// How often each kind of opponent is drawn, relative to the others.
  double self_weight = 0.5;
  double pool_weight = 0.3;
  double baseline_weight = 0.2;
  std::string baseline{};              ///< the gate that is drawn with baseline_weight
  std::vector<std::string> anchors{};  ///< gates that are members for good
  /// Patterns, as of a PrecisionPattern, of the tensors that a version keeps. Empty: all but those
  /// of the roles optimizer and learning_state, which names tell where a file does not.
  std::vector<std::string> tensors{};

  friend bool operator==(const PoolConfig&, const PoolConfig&) = default;
};

struct RunConfig {
  /// The extension of all checkpoints: "thalia" for .thalia files, any other for what the library
  /// does not look into. Letters, digits and '.'.
  std::string extension = "thalia";
  std::vector<PhaseConfig> phases{};  ///< in their order; at least one, names differ
  DeltaPolicy deltas{};
  std::optional<PoolConfig> pool{};
  std::vector<std::string> fixed_networks{};  ///< folders next to the phases: "grp"
  /// Keys that every record has; empty: nothing is asked for. thalia/store/record.h.
  std::vector<std::string> required_keys{};

  /// @throws UsageError (not_found) that names the phases there are.
  const PhaseConfig& phase(std::string_view name) const;
  /// True where checkpoints are .thalia files.
  bool is_thalia() const noexcept;
};

/// The specification's: phase1, phase2 and phase3, 20 checkpoints each, the gates bc_best and
/// distill_best, a pool in phase3, and the record's keys.
RunConfig hydra_config();

enum class ConfigFormat { toml, json };

/// @param name of the file, for messages. @throws FormatError (bad_value, bad_json, bad_name) that
/// names the member, its value and what was expected, also for a member that nobody knows.
RunConfig parse_run_config(std::string_view text, ConfigFormat format, std::string_view name = {});
/// A text that parse_run_config() reads back as the same configuration, but for
/// RetentionPolicy::keep. @throws UsageError (bad_argument) for a configuration that it would
/// refuse.
std::string run_config_text(const RunConfig& config, ConfigFormat format);

}  // namespace thalia
