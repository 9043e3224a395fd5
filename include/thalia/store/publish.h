// Publisher: the states of a training for those who follow it, each as soon as it is made.
//
//   thalia::Publisher publisher("runs/20260115_143022_a1b2c3d4");
//   publisher.publish(step, brain);
//
// What changed since the last one is written, then followers see it. A Follower takes them:
// thalia/store/follow.h. docs/use/follow.md, "Publish".
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "thalia/async_save.h"
#include "thalia/detail/held.h"
#include "thalia/options.h"
#include "thalia/state/brain.h"
#include "thalia/state/checkpoint.h"
#include "thalia/state/delta.h"
#include "thalia/store/run.h"
#include "thalia/store/writer.h"
#include "thalia/writer.h"

namespace thalia {

struct PublisherOptions {
  /// Where the states go. Empty: the last phase of the run that has a checkpoint, else its first.
  std::string phase{};
  /// Keeps a copy of the state that was published last, so that a delta against it reads no file.
  /// That takes as much memory as the state. Else deltas are taken against the files.
  bool hold = true;
};

struct PublishOptions {
  std::optional<double> metric{};  ///< of the phase's metric; NaN is never the best
  /// As every save's; `output`, but for `reproducible`, and `sha256` are the run's.
  SaveOptions save{};
};

/// A state that followers see.
struct PublishedState : StoredCheckpoint {
  std::uint32_t tensors = 0;
  std::uint32_t changed = 0;   ///< of these, tensors that the file stores something of
  bool from_memory = false;    ///< a delta against the copy in memory: no base was read
  double visible_seconds = 0;  ///< from the call until `latest` led to it; part of `seconds`
};

/// Publishes into a run whose checkpoints are .thalia files, as full files and deltas by the run's
/// policy; with the policy `cost` by bytes alone, as measuring takes longer than the rest. The
/// pointer `latest` moves last: a follower sees the old state or the new one. Then what retention
/// does not keep goes, but for what a follower holds or needs.
///
/// Steps increase. One that is not after `latest` is refused, and nothing is written. A step that
/// was left behind, as the run went back to before it, is replaced.
///
/// Where a call throws, the old state stays the latest and nothing of the new one stays, unless
/// `latest` led to it already: newest() tells. The next call may be of the same step then.
///
/// Externally synchronised. In a forked child every call but the destructor is a UsageError
/// (wrong_state).
class Publisher {
 public:
  /// Takes the run's lock, for as long as the publisher lives. A run whose last writer was killed
  /// is put in order: a state whose file was complete is its latest then. @throws as RunWriter();
  /// UsageError (not_found) for a phase, (wrong_state) for a run of other files.
  explicit Publisher(const std::filesystem::path& run, PublisherOptions options = {},
                     RunWriterOptions run_options = {});
  /// Into the run of a writer that outlives the publisher.
  explicit Publisher(RunWriter& run, PublisherOptions options = {});
  /// Waits for what publish_async() has begun.
  ~Publisher();
  Publisher(Publisher&&) noexcept;
  Publisher& operator=(Publisher&&) noexcept;

  const Run& run() const noexcept;
  /// For all else that is saved into the run.
  RunWriter& writer() noexcept;
  const std::string& phase() const noexcept;
  /// The step of the latest; nullopt: there is none. The next one is after it. @throws IoError.
  std::optional<std::uint64_t> newest() const;

  /// Back once followers see it. The state is read until then, and copied where a copy is held: the
  /// caller may change it afterwards. @throws UsageError (bad_argument) for a step that is not
  /// after the latest or beyond kMaxStep, (not_found) for a record without a required key; what the
  /// state's sources throw; IoError, as of a full disk; CancelledError.
  PublishedState publish(std::uint64_t step, const StateSource& state,
                         const PublishOptions& options = {});
  /// @param brain_options how the brain becomes a state, the same each time; its `save` does not
  /// count. @throws also UsageError (bad_argument) for quantization.
  PublishedState publish(std::uint64_t step, const BrainState& brain,
                         const PublishOptions& options = {},
                         const BrainSaveOptions& brain_options = {});
  /// What a writer of new_checkpoint() has declared, all of it with its bytes. Nobody commits the
  /// writer. PublishOptions::save does not count: its own options do.
  PublishedState publish(const Writer& writer, const PublishOptions& options = {});
  /// A writer of a step, for publish().
  Writer new_checkpoint(std::uint64_t step, SaveOptions options = {});

  /// The same in the background. Back once the state is copied: the caller may change it. One that
  /// is under way is waited for first, so at most two states are held beside the caller's. In the
  /// order of the calls; after one that fails the next is taken against what is there.
  /// @throws as publish() for the step and the state; what comes later comes through the handle.
  SaveHandle<PublishedState> publish_async(std::uint64_t step, const StateSource& state,
                                           const PublishOptions& options = {});
  SaveHandle<PublishedState> publish_async(std::uint64_t step, const BrainState& brain,
                                           const PublishOptions& options = {},
                                           const BrainSaveOptions& brain_options = {});
  SaveHandle<PublishedState> publish_async(const Writer& writer,
                                           const PublishOptions& options = {});
  /// Until nothing is under way. Errors are the handles'.
  void wait();

 private:
  class Impl;
  detail::Owned<Impl> impl_;
};

}  // namespace thalia
