// For what takes one call at a time.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "thalia/error.h"

namespace thalia {

/// Refuses a call that begins within another one, from a callback or on another thread, before it
/// changes what the other works with. It is no lock: nobody waits.
class Busy {
 public:
  class Call {
   public:
    /// @param what is in use, and its path, which may be empty, for the message.
    /// @throws UsageError (wrong_state) until the call that runs has ended.
    Call(Busy& busy, std::string_view what, std::string_view path) : busy_(busy) {
      if (!busy_.runs_.exchange(true, std::memory_order_acquire)) return;
      throw UsageError(ErrorCode::wrong_state,
                       std::string(what) + " is in use: another call of it has not ended",
                       {.path = std::string(path)});
    }
    ~Call() { busy_.runs_.store(false, std::memory_order_release); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Busy& busy_;
  };

 private:
  std::atomic<bool> runs_{false};
};

}  // namespace thalia
