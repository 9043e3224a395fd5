// Where a thread runs what belongs to a save: the save itself, and what it calls.
#pragma once

namespace thalia::detail {

class SaveQueue;

/// For as long as it lives, this thread is within a save of the queue. What waits for that queue
/// there would wait for itself. They nest, also of several queues.
class InSave {
 public:
  explicit InSave(const SaveQueue* queue) noexcept;
  ~InSave();
  InSave(const InSave&) = delete;
  InSave& operator=(const InSave&) = delete;

  static bool of(const SaveQueue* queue) noexcept;
  static bool any() noexcept;
  /// @throws UsageError (wrong_state) within a save of the queue.
  static void refuse(const SaveQueue* queue);

 private:
  const SaveQueue* const queue_;
  const InSave* const outer_;
};

}  // namespace thalia::detail
