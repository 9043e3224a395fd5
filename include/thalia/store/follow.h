// Follower: the newest state of a training, in memory or in a file, as the training publishes it.
//
//   thalia::Follower follower("runs/20260115_143022_a1b2c3d4");
//   while (const auto update = follower.wait()) {
//     const auto state = follower.current();  // stays as it is for as long as it is held
//     serve(state->at("layers", "0.weight"), update->step);
//   }
//
// A server that has memory of its own registers it, and changes it under its own lock:
//
//   follower.add_memory("layers", "0.weight", weights);
//   if (follower.prepare()) {                     // reads and verifies; touches nothing
//     const std::lock_guard lock(server);
//     follower.apply();                           // copies what changed
//   }
//
// docs/use/follow.md.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "thalia/detail/held.h"
#include "thalia/options.h"
#include "thalia/state/delta.h"
#include "thalia/state/tensor_value.h"
#include "thalia/store/retention.h"
#include "thalia/types.h"

namespace thalia {

/// A tensor that a follower holds.
struct FollowedTensor : ChainTensor {
  std::string region{};
  std::string name{};
  Role role = Role::weights;
};

/// Memory of the server's own for a tensor, of its logical bytes. A dense one's are its elements.
struct ServerMemory {
  ServerMemory() = default;
  /// For any tensor of so many bytes.
  template <std::convertible_to<MutableByteSpan> Bytes>
  // A span is memory, and a ServerMemory is no span.
  // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload)
  ServerMemory(Bytes&& memory) : bytes(std::forward<Bytes>(memory)) {}
  /// For a dense one of this type and shape alone.
  ServerMemory(MutableByteSpan memory, DType type, const Shape& extents)
      : bytes(memory), dtype(type), shape(extents) {}

  MutableByteSpan bytes{};
  std::optional<DType> dtype{};
  std::optional<Shape> shape{};
};

/// Memory for a tensor; of no bytes where the follower is to hold it.
using FollowMemory = std::function<ServerMemory(const FollowedTensor&)>;

struct FollowOptions {
  /// This phase of a run alone. Empty: the last one that has a checkpoint. A folder that is no run
  /// has none.
  std::string phase{};
  /// How often the folder is looked at where the system reports no changes, and besides. 1 ms or
  /// more.
  std::chrono::milliseconds interval{1000};
  bool polling = false;  ///< do not ask the system to report changes
  /// Tells a run that this follower is there, so that retention keeps what it holds and needs next
  /// (docs/format/store.md, "Followers"). Where the run may not be written to, a warning says so.
  bool lease = true;
  /// Patterns of the tensors that are followed, as in a PrecisionPattern; empty: all, those of
  /// connections left out.
  std::vector<std::string> include{};
  /// Asked once for each tensor that add_memory() does not name, and again where its layout
  /// changes.
  FollowMemory memory{};
  /// Not empty: the newest state is in this file, a whole .thalia file at each moment, and none is
  /// in memory. Not in the folder that is followed.
  std::filesystem::path into{};
  OutputOptions output{};  ///< of `into`; it replaces the file that is there
  /// How the files are read, and the bases that they name. Its stop ends wait() with
  /// CancelledError. In a run no file outside of it is opened.
  ChainOptions chain{};
  /// One sentence a call: a file that cannot be read, and is passed over.
  std::function<void(const std::string&)> on_warning{};
};

/// From one state to the next. `bytes` is of the file.
struct FollowUpdate : KeptFile {
  std::filesystem::path file{};
  std::uint64_t number = 0;    ///< of the follower's updates, from 1 on
  std::uint64_t saved_ns = 0;  ///< since 1970: when the file was changed last
  /// Deltas that were applied in order to what was held. 0: the state was read as a whole, of the
  /// file with all that it is based on.
  unsigned deltas = 0;
  std::uint64_t bytes_read = 0;  ///< of the files that were needed, together
  /// In memory, of the tensors that differ; of `into`, all that were written.
  std::uint64_t bytes_changed = 0;
  std::vector<std::string> changed{};  ///< REGION/NAME of tensors that differ or are new
  std::vector<std::string> removed{};  ///< that the state does not have any more
  /// The deltas could not be applied, or the newest checkpoint not be read: `reason` says why.
  bool fell_back = false;
  std::string reason{};
  bool went_back = false;  ///< the run goes on from an earlier step
  double seconds = 0;      ///< of reading and verifying, then of applying
  double latency = 0;      ///< seconds from saved_ns until it was applied
};

/// What apply() calls for each tensor that changes: a server can keep its readers out of one at a
/// time. What they throw ends apply(), which goes on with that tensor when it is called again.
struct FollowHooks {
  std::function<void(const FollowedTensor&)> before{};
  std::function<void(const FollowedTensor&)> after{};
};

namespace store {
class FollowerImpl;
}

/// One state. Immutable, but for tensors in memory of the server's own, which change with apply().
/// Any number of threads.
class FollowedState {
 public:
  std::uint64_t step() const noexcept { return step_; }
  const std::string& phase() const noexcept { return phase_; }
  const std::filesystem::path& file() const noexcept { return file_; }
  const std::string& metadata_json() const noexcept { return metadata_json_; }
  /// In the order of the names of regions, then tensors.
  std::span<const FollowedTensor> tensors() const noexcept { return tensors_; }
  /// Shares the state's memory, and keeps it. One that did not change is the same memory as in the
  /// state before. nullopt: there is none.
  std::optional<Tensor> find(std::string_view region, std::string_view name) const;
  /// @throws UsageError (not_found).
  Tensor at(std::string_view region, std::string_view name) const;

 private:
  friend class store::FollowerImpl;
  std::uint64_t step_ = 0;
  std::string phase_;
  std::filesystem::path file_;
  std::string metadata_json_;
  std::vector<FollowedTensor> tensors_;
  std::vector<Tensor> values_;
};

/// Follows the `latest` checkpoint of a run, or of a folder with .thalia and .delta.thalia files:
/// what its pointer names, else the one of the largest step. Nothing in the folder is changed, but
/// for the follower's own lease in a run.
/// Externally synchronised, but for current() and wake(), which any thread may call. In a forked
/// child all but current() and the end of it is UsageError (wrong_state), and wake() does nothing.
class Follower {
 public:
  /// @throws IoError; UsageError for options, (not_found) for a phase or a folder.
  explicit Follower(const std::filesystem::path& folder, const FollowOptions& options = {});
  ~Follower();
  Follower(Follower&&) noexcept;
  Follower& operator=(Follower&&) noexcept;

  /// Memory of the server's own for a tensor, that lives as long as the follower. Nothing else
  /// changes it. Before the first update. @throws UsageError (wrong_state) after it, and with
  /// `into`; (bad_argument) for a tensor that has some.
  void add_memory(std::string_view region, std::string_view name, const ServerMemory& memory);
  /// The same for a tensor that has one of these names, in whichever region: what shares memory, as
  /// tied weights do, is in a file by any of its names, or by several.
  void add_memory(std::span<const std::string> names, const ServerMemory& memory);

  /// Waits for a checkpoint that is newer than what is held, at first for any, reads and verifies
  /// it, and applies it. nullopt once `timeout` has passed, none: never, or after wake(). What
  /// cannot be read is passed over with a warning, and what was held stays. @param stop ends this
  /// wait, as the stop of the options ends all. @throws CancelledError;
  /// UsageError (size_mismatch, dtype_mismatch, shape_mismatch) for memory that a tensor does not
  /// fit, (not_found) for memory of none, (duplicate) of two; IoError where the folder cannot be
  /// read, or `into` not be written.
  std::optional<FollowUpdate> wait(std::optional<std::chrono::milliseconds> timeout = {},
                                   const std::stop_token& stop = {});

  /// The same without applying it: no memory that is in use is touched. A newer one takes the place
  /// of one that was prepared and not applied. `seconds` and `latency` are not known yet.
  std::optional<FollowUpdate> prepare(std::optional<std::chrono::milliseconds> timeout = {},
                                      const std::stop_token& stop = {});
  /// Applies what prepare() has prepared, tensor by tensor, then current() is the new state. It
  /// opens and reads no file, unless there is an `into`. @throws UsageError (wrong_state) where
  /// nothing is prepared; what hooks throw; for `into`, as OutputFile.
  FollowUpdate apply(const FollowHooks& hooks = {});

  /// null before the first update, and always with `into`. A state that is held stays as it is,
  /// while newer ones come.
  std::shared_ptr<const FollowedState> current() const;
  /// Ends the wait that is under way, or else the next one.
  void wake() noexcept;
  /// False where the system reports changes.
  bool is_polling() const noexcept;

 private:
  detail::Owned<store::FollowerImpl> impl_;
};

}  // namespace thalia
