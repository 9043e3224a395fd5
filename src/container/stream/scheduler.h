// Where the threads of a stream meet: the feeder that admits tensors and hands out units, the
// workers that read them, and the caller that takes what is complete. This class only counts and
// orders; it touches no file and no payload. docs/contribute/design.md, "Streaming".
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <vector>

#include "io/system/process.h"

namespace thalia::container {

/// Internally synchronised. Tensors and units go by their numbers in the plan.
class StreamScheduler {
 public:
  /// @param memory_bytes admitted memory, at most. @param ahead units that may wait for a worker.
  /// @param delivery the tensors in the order in which they are handed out; empty: as they are
  /// completed.
  StreamScheduler(std::uint64_t memory_bytes, std::size_t ahead, std::vector<std::size_t> delivery,
                  std::size_t tensors);

  // The feeder's side. Both wait, and return false once the stream has ended.
  /// Waits until `bytes` more fit into memory_bytes, or nothing can go on without them.
  bool admit(std::uint64_t bytes);
  bool push(std::size_t unit);
  /// The tensors before `end` have their memory.
  void note_begun(std::size_t end);
  void close();  ///< no unit follows

  // The workers' side. A unit's tensors are completed before the unit is.
  /// The next unit to read. nullopt: without `wait`, there is none now; with it, there will be
  /// none.
  std::optional<std::size_t> take(bool wait);
  /// Waits until `tensor` has its memory. @return the tensors before which all have it; nullopt
  /// once the stream has ended.
  std::optional<std::size_t> wait_begun(std::size_t tensor);
  void complete_unit() noexcept;
  void complete_tensor(std::size_t tensor);

  /// Ends the stream; the first error is what the caller gets.
  void fail(std::exception_ptr error) noexcept;
  void stop() noexcept { fail(nullptr); }
  bool has_ended() const;

  // The caller's side.
  /// Waits for the next tensor to hand out; nullopt when there is none any more or the stream was
  /// ended. `bytes_of` says how much admitted memory a tensor has.
  template <typename BytesOf>
  std::optional<std::size_t> wait_next(BytesOf bytes_of) {
    std::unique_lock lock(mutex_);
    const auto next = wait_deliverable(lock);
    if (next) hand_out(bytes_of(*next));
    return next;
  }
  std::exception_ptr error() const;
  /// So many admitted bytes are free that were not handed out, and will not be. On any thread.
  void withdraw(std::uint64_t bytes) noexcept;
  /// So many bytes that were handed out are free. On any thread, even after the stream has ended.
  void release(std::uint64_t bytes) noexcept;

 private:
  std::optional<std::size_t> deliverable() const;
  std::optional<std::size_t> wait_deliverable(std::unique_lock<std::mutex>& lock);
  void hand_out(std::uint64_t bytes);

  const std::uint64_t memory_bytes_;
  const std::size_t ahead_;
  const std::size_t tensors_;
  const io::OwnProcess process_;
  mutable std::mutex mutex_;
  std::condition_variable feeder_;
  std::condition_variable workers_;
  std::condition_variable begun_changed_;
  std::condition_variable caller_;
  std::deque<std::size_t> ready_;
  std::size_t unfinished_units_ = 0;  ///< pushed and not completed
  std::size_t begun_ = 0;             ///< tensors that have their memory: those before this one
  bool starving_ = false;             ///< the last unit's worker, for its next tensor's memory
  bool closed_ = false;
  bool ended_ = false;
  std::exception_ptr error_;
  std::uint64_t ahead_bytes_ = 0;  ///< admitted and not handed out
  std::uint64_t held_bytes_ = 0;   ///< handed out and not released
  bool waiting_ = false;           ///< the caller, for a tensor
  std::vector<std::size_t> delivery_;
  std::vector<char> complete_;            ///< by tensor, where delivery_ gives the order
  std::deque<std::size_t> as_completed_;  ///< if it does not
  std::size_t handed_out_ = 0;
};

}  // namespace thalia::container
