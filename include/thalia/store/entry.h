// What a store knows of one checkpoint without opening it. docs/format/store.md, "Listing".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace thalia {

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
  /// Of this file alone: of a delta, not of what it is based on.
  Condition condition = Condition::unknown;
  /// The file in the same folder that a delta is based on. Empty for a full file.
  std::string base{};
  unsigned depth = 0;  ///< deltas from here down to a full file
  /// Time of reading the whole chain by that of reading a full file, as it was measured once when
  /// the delta was saved.
  std::optional<double> read_factor{};
  /// Why retention leaves it alone: "latest", "best", "gate bc_best". Empty if it does not.
  std::vector<std::string> protected_by{};

  bool is_delta() const noexcept { return depth != 0; }
  friend bool operator==(const CheckpointEntry&, const CheckpointEntry&) = default;
};

}  // namespace thalia
