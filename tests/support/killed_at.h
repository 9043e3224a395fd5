// Work that is stopped at its system calls, counted, and killed at one of them.
#pragma once

#include <functional>

namespace thalia::test {

enum class End {
  killed,    ///< at the call that was asked for
  returned,  ///< it made fewer calls
  failed,    ///< it threw, or ended in a way of its own
};

/// Runs `work` in a forked child, traced. As it is about to make a system call, `at_call` gets the
/// call's number, the first one being 0, while the child waits; it is killed if that returns false.
/// @throws std::runtime_error where the kernel allows no tracing.
End run_stopped(const std::function<bool(unsigned)>& at_call, const std::function<void()>& work);

/// The same, killed at system call `number`. What the child's earlier calls did stays done.
End run_killed_at(unsigned number, const std::function<void()>& work);

}  // namespace thalia::test
