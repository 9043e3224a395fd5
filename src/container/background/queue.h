// The saves of one AsyncSaver: which may begin, which memory each snapshot has, and the thread that
// writes them in order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "container/background/background_save.h"
#include "container/background/snapshot_arenas.h"
#include "container/background/state.h"
#include "io/system/process.h"
#include "thalia/async_save.h"

namespace thalia::detail {

/// Internally synchronised. Its thread runs from start() to close(), and keeps it alive.
class SaveQueue : public std::enable_shared_from_this<SaveQueue> {
 public:
  /// @throws UsageError for options out of bounds.
  explicit SaveQueue(AsyncSaveOptions options);
  SaveQueue(const SaveQueue&) = delete;
  SaveQueue& operator=(const SaveQueue&) = delete;
  ~SaveQueue() = default;

  /// @throws IoError if no thread is to be had.
  void start();
  /// Waits for every save, and for the thread; within a save of its own not even for that: the
  /// thread ends by itself then. In a forked child, which has no such thread, nothing.
  void close() noexcept;
  /// Cancels every save, and waits for their ends until `deadline`.
  void cancel_all(std::chrono::steady_clock::time_point deadline) noexcept;

  // As AsyncSaver has them, @throws UsageError (wrong_state) in a forked child, and within a save
  // of its own:
  SaveHandle<> save(std::unique_ptr<container::BackgroundSave> save);
  void reserve(std::uint64_t bytes, unsigned snapshots, const std::stop_token& cancel);
  void reserve(const Writer& declared, unsigned snapshots, const std::stop_token& cancel);
  void wait_until_reserved();
  void wait_all();
  bool wait_all_for(std::chrono::nanoseconds time);
  void check_caller() const;
  std::uint64_t snapshot_bytes() const noexcept;  ///< 0 in a forked child, which has none of it

  /// Asks a save to end, and ends it if it only waits. Not in a forked child.
  void cancel(SaveState& state) noexcept;

 private:
  struct RequestStop {
    std::stop_source source;
    void operator()() noexcept { source.request_stop(); }
  };
  struct Job {
    std::shared_ptr<SaveState> state;
    container::SharedArena arena;  ///< of the snapshot; null if nothing is copied
    std::unique_ptr<container::BackgroundSave> save;
    /// From the caller's own stop token to the state's.
    std::optional<std::stop_callback<RequestStop>> link;
  };
  struct Failure {
    std::shared_ptr<SaveState> state;  ///< null: on_done's error
    std::exception_ptr error;
    bool is_unseen() const noexcept;
  };

  void require_room(std::uint64_t bytes) const;
  void reserve(std::uint64_t bytes, std::uint64_t touched, unsigned snapshots,
               const std::stop_token& cancel);
  void cancel_unfinished() noexcept;
  std::unique_ptr<Job> admit(std::uint64_t bytes, const std::stop_token& cancel);
  using Lock = std::unique_lock<io::ProcessMutex>;
  /// For what may wait for saves.
  Lock lock_outside() const;
  template <typename Condition>
  void wait(Lock& lock, const std::stop_token& cancel, Condition condition);
  void retract(Job& job) noexcept;
  void work() noexcept;
  void touch_reserved(Lock& lock) noexcept;
  void run(std::unique_ptr<Job> job) noexcept;
  void keep(Failure failure) noexcept;
  void throw_oldest(Lock& lock);

  const AsyncSaveOptions options_;
  const std::size_t most_unfinished_;
  mutable io::ProcessMutex mutex_{"the saver"};
  std::condition_variable_any changed_;  ///< which a stop ends a wait for
  // Guarded by mutex_:
  container::SnapshotArenas arenas_;
  std::vector<std::shared_ptr<SaveState>> unfinished_;  ///< from their admission to their end
  std::vector<std::unique_ptr<Job>> waiting_;           ///< in the order in which they are written
  std::vector<Failure> failed_;                         ///< for wait_all()
  bool touching_ = false;  ///< the thread brings in pages that were reserved
  bool closing_ = false;

  std::thread thread_;
};

}  // namespace thalia::detail
