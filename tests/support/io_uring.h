// Whether a test program may expect io_uring.
#pragma once

namespace thalia::test {

/// Set by tests/support/without_io_uring.cc for the program that it runs.
inline constexpr const char* kIoUringDenied = "THALIA_IO_URING_DENIED";

/// What the kernel, or a filter before it, says to io_uring_setup.
enum class IoUring {
  usable,
  denied,   ///< by tests/support/without_io_uring.cc: a fallback must be taken
  missing,  ///< otherwise: an old kernel, a container's policy
};
/// Throws std::runtime_error if it was to be denied and is usable all the same.
IoUring io_uring_here();

}  // namespace thalia::test
