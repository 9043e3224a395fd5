// The process and its threads as the operating system knows them.
#pragma once

#include <cstdint>

namespace thalia::io {

/// Differs in a forked child.
std::int64_t process_id() noexcept;

/// Raises the calling thread's nice value by `steps` (0 to 19); threads that it starts from now on
/// have the new value too. Best effort.
void be_nice(int steps) noexcept;

}  // namespace thalia::io
