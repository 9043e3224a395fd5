// System calls that fail on demand: work runs in a forked child under a seccomp filter.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace thalia::test {

/// A condition on one argument (0 to 5) of a system call.
struct ArgumentCondition {
  enum class Kind { equals, has_bits, at_least };
  unsigned index;
  Kind kind;
  std::uint64_t value;

  /// Descriptors, say. The lowest that is free in the parent is the child's lowest free one too.
  static ArgumentCondition equals(unsigned index, std::uint64_t value) {
    return {index, Kind::equals, value};
  }
  /// All bits of `value` are set in the argument: flags.
  static ArgumentCondition has_bits(unsigned index, std::uint64_t value) {
    return {index, Kind::has_bits, value};
  }
  /// The argument, as an unsigned number, is `value` or more: offsets, sizes.
  static ArgumentCondition at_least(unsigned index, std::uint64_t value) {
    return {index, Kind::at_least, value};
  }
};

/// What one system call does instead of its work. Where several faults fit, the first counts.
struct Fault {
  long call;            ///< SYS_fsync, … of <sys/syscall.h>
  int errno_value = 0;  ///< it fails with this; 0: the process is killed at it
  std::optional<ArgumentCondition> when = std::nullopt;  ///< nullopt: always
};

/// How the work in the child ended.
struct Outcome {
  enum class Kind {
    returned,
    io_error,     ///< it threw thalia::IoError
    other_error,  ///< it threw something else, or the child ended in a way of its own
    killed,       ///< by a fault with errno_value 0, or by kill()
  };
  Kind kind;
  int errno_value = 0;  ///< of the IoError
  std::string message;  ///< of the exception, or how the child ended
};

/// Runs `work` in a forked child whose system calls suffer `faults`, and waits for it. Nothing of
/// the parent's memory changes. The child leaves through _exit: no destructor outside `work` runs.
/// Faults must leave it write(2), with which it reports.
/// @throws std::runtime_error where the kernel allows no fork or no filter.
Outcome run_with_faults(const std::vector<Fault>& faults, const std::function<void()>& work);

/// Lets this process, and every program it becomes or starts, suffer `faults` from now on.
/// @return false, with errno, where the kernel allows no filter.
bool install_faults(const std::vector<Fault>& faults);

std::ostream& operator<<(std::ostream& out, Outcome::Kind kind);

}  // namespace thalia::test
