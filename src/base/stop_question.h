// A stop that nobody requests, and that is asked for.
#pragma once

#include <functional>
#include <stop_token>
#include <utility>

#include "base/fail.h"

namespace thalia {

/// Answered on this thread alone, as long as it lives: whether work is to end. For work on the
/// thread of a caller who has no other one that could request a stop.
class StopQuestion {
 public:
  /// @param wanted is borrowed.
  explicit StopQuestion(const std::function<bool()>& wanted) noexcept
      : outer_(std::exchange(current, &wanted)) {}
  ~StopQuestion() { current = outer_; }
  StopQuestion(const StopQuestion&) = delete;
  StopQuestion& operator=(const StopQuestion&) = delete;
  static bool says_yes() { return current != nullptr && (*current)(); }

 private:
  const std::function<bool()>* outer_;
  static inline thread_local const std::function<bool()>* current = nullptr;
};

/// stop_if_cancelled(), and where the question says so. What writes files calls it.
inline void stop_if_wanted(const std::stop_token& cancel) {
  if (StopQuestion::says_yes()) throw CancelledError(ErrorCode::cancelled, "cancelled on request");
  stop_if_cancelled(cancel);
}

}  // namespace thalia
