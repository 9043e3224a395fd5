// Work that is killed at a system call of its own, counted.
#pragma once

#include <functional>

namespace thalia::test {

enum class End {
  killed,    ///< at the call that was asked for
  returned,  ///< it made fewer calls
  failed,    ///< it threw, or ended in a way of its own
};

/// Runs `work` in a forked child, traced, and kills it as it is about to make system call `number`,
/// the first one being 0. What the child's earlier calls did stays done.
/// @throws std::runtime_error where the kernel allows no tracing.
End run_killed_at(unsigned number, const std::function<void()>& work);

}  // namespace thalia::test
