// The checkpoints of a run as its folder lists them, and which of them stay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace thalia {

// What a store knows of one checkpoint without opening it. docs/format/store.md, "Listing".

/// The largest step that a name of eight digits has room for: names sort as their steps do.
inline constexpr std::uint64_t kMaxStep = 99'999'999;

/// What is known of a checkpoint's bytes without reading them.
enum class Condition {
  unknown,  ///< nobody has looked since the file was last changed
  whole,    ///< unchanged since it was saved, or was read and found whole
  damaged,  ///< unchanged since it was read and found damaged; or a delta whose base is not there
};

/// A file that a run keeps of a checkpoint: the checkpoint itself, or what was made of it.
struct KeptFile {
  std::string phase{};  ///< its name
  std::uint64_t step = 0;
  std::uint64_t bytes = 0;  ///< of the file

  friend bool operator==(const KeptFile&, const KeptFile&) = default;
};

/// A value type.
struct CheckpointEntry : KeptFile {
  std::string file{};              ///< name in the phase's folder of checkpoints
  std::uint64_t saved_at = 0;      ///< seconds since 1970
  std::optional<double> metric{};  ///< the value that it was saved with
  bool has_digest = false;         ///< NAME.sha256 is there
  /// The run went back to before it: something of a smaller step was saved, or resumed from, later.
  bool left_behind = false;
  /// The condition of this file alone; for a delta, not of what it is based on.
  Condition condition = Condition::unknown;
  /// The file in the same folder that a delta is based on. Empty for a full file.
  std::string base{};
  unsigned depth = 0;  ///< deltas from here down to a full file
  /// Time of reading the whole chain by that of a compressed full file, as it was measured when
  /// the delta was saved.
  std::optional<double> read_factor{};
  /// Why retention leaves it alone: "latest", "best", "gate bc_best". Empty if it does not.
  std::vector<std::string> protected_by{};

  bool is_delta() const noexcept { return depth != 0; }
  friend bool operator==(const CheckpointEntry&, const CheckpointEntry&) = default;
};

// Which checkpoints of a phase stay: rules that are put together, and a pure function that carries
// them out and says why.
//
//   thalia::RetentionPolicy policy{.keep_last = 5, .keep_every_steps = 10'000, .keep_best = 3};
//   for (const auto& decision : thalia::plan_retention(entries, policy, {.now = now}))
//     print(entries[decision.entry].file, decision.reason);
//
// docs/format/store.md, "Retention".

/// Which of two values of a metric is the better one.
enum class Direction { min, max };

/// What becomes of a file that is not to be kept, but that a delta that is kept needs.
enum class NeededBases {
  keep,    ///< it stays as long as the delta
  squash,  ///< the delta becomes a full file first
};

/// What is protected, and the latest, always stays. Else a checkpoint stays if one of the rules
/// that are set asks for it, or none is set; unless a limit says that it goes.
struct RetentionPolicy {
  // --- Rules ----------------------------------------------------------------
  /// So many of the newest, those that are protected counted among them: with 20, the
  /// specification's first-in-first-out. 0: this rule asks for none.
  std::optional<std::uint32_t> keep_last = 20;
  std::optional<std::uint64_t> keep_every_steps{};    ///< steps that are multiples of it
  std::optional<std::uint64_t> keep_every_seconds{};  ///< the first one saved in each such span
  std::optional<std::uint32_t> keep_best{};           ///< so many of those with the best metrics
  /// Asked of each one; not part of a run's configuration.
  std::function<bool(const CheckpointEntry&)> keep{};

  // --- Limits ---------------------------------------------------------------
  std::optional<std::uint64_t> max_age_seconds{};  ///< older ones go
  /// The bytes that all files that stay may have together: the oldest go until the others fit.
  std::optional<std::uint64_t> max_bytes{};

  NeededBases needed_bases = NeededBases::keep;
};

/// What the decision depends on besides the entries.
struct RetentionFacts {
  std::uint64_t now = 0;  ///< seconds since 1970
  Direction direction = Direction::min;
};

struct RetentionDecision {
  enum class Fate { keep, squash, remove };  ///< squash: becomes a full file, and stays
  std::size_t entry;                         ///< index
  Fate fate;
  std::string reason;  ///< "one of the 20 newest", "beyond the 20 newest", …
};

/// One decision for each entry, in their order. Reads nothing but its arguments. At least one entry
/// is kept, if there is one. Entries are of one phase; a base that is not among them is not looked
/// for.
std::vector<RetentionDecision> plan_retention(std::span<const CheckpointEntry> entries,
                                              const RetentionPolicy& policy,
                                              const RetentionFacts& facts);

}  // namespace thalia
