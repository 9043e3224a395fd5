// Rings that cancel, cut short and refuse on demand: liburing's calls of a test program that is
// linked with ring_fault_dep pass through here.
#pragma once

#include <climits>
#include <cstdint>

namespace thalia::test {

/// What a ring does instead of its work, each as often as it is asked.
struct RingFaults {
  int setup_error = 0;  ///< creating a ring fails with this errno
  /// Operations are not done, and end with this errno.
  int operation_error = 0;
  unsigned longest_transfer = UINT_MAX;  ///< reads and writes really end after as many bytes
  unsigned every = 1;                    ///< the two above befall one operation of so many
  /// A submission takes as many of what is queued; 0: none of them, without an error.
  unsigned longest_submission = UINT_MAX;
  int submission_error = 0;  ///< submitting fails with this errno, and takes nothing
  int wait_error = 0;        ///< waiting fails with this errno, whatever has ended
};

/// While it lives, all rings of the process suffer these faults. One at a time.
class FaultyRings {
 public:
  explicit FaultyRings(const RingFaults& faults);
  ~FaultyRings();
  FaultyRings(const FaultyRings&) = delete;
  FaultyRings& operator=(const FaultyRings&) = delete;

  /// Operations that were not done, or were cut short.
  std::uint64_t struck() const;
};

}  // namespace thalia::test
