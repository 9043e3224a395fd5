// Whether reads of a file follow each other, and how far ahead of them the system is to read. The
// kernel's own read-ahead at page faults is 128 KiB on most disks, a tenth of what they need.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "thalia/types.h"

namespace thalia::io {

/// Asks the system to read mapped memory before it is touched. Best effort; memory that no file is
/// mapped to stays as it is.
void will_need(ByteSpan mapped) noexcept;

/// Any number of threads that share a walk through a file.
class ReadAhead {
 public:
  /// Asked for at most, after what is read.
  static constexpr std::uint64_t kMost = 16 << 20;
  /// Less than this at a time is left to page faults.
  static constexpr std::uint64_t kLeast = 128 << 10;

  struct Extent {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t length() const noexcept { return end - begin; }
  };

  /// To be called before [offset, offset + length) is read. @return what to ask the system for,
  /// this extent included if it is not asked for yet; often nothing. A walk reads half or more of
  /// what it asks for.
  Extent before(std::uint64_t offset, std::uint64_t length) noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return {};  // another thread is asking
    const std::uint64_t end = offset + length;
    if (offset > front_ + kGap * length || offset + kBehind < front_) {
      read_ = asked_ = 0;
      front_ = asked_end_ = offset;
    }
    const std::uint64_t may_ask = 2 * read_ + length - asked_;
    read_ += length;
    // Threads take their parts in order, and come here a little out of it.
    if (offset < front_) return worth_asking({offset, end});
    front_ = end;
    // Half of the most is still ahead: the next one will do.
    if (asked_end_ >= end + kMost / 2) return {};
    const std::uint64_t begin = std::max(asked_end_, offset);
    const Extent extent =
        worth_asking({begin, std::max(begin, std::min(begin + may_ask, end + kMost))});
    if (extent.length() > 0) {
      asked_ += extent.length();
      asked_end_ = extent.end;
    }
    return extent;
  }

 private:
  static constexpr std::uint64_t kGap = 8;  // times the length of a read
  static constexpr std::uint64_t kBehind = 64 << 20;

  static Extent worth_asking(Extent extent) noexcept {
    return extent.length() < kLeast ? Extent{} : extent;
  }

  std::mutex mutex_;
  std::uint64_t read_ = 0;       ///< bytes since the walk began
  std::uint64_t front_ = 0;      ///< where the furthest of them ends
  std::uint64_t asked_ = 0;      ///< bytes that the system was asked for, for this walk
  std::uint64_t asked_end_ = 0;  ///< where the last of them ends
};

}  // namespace thalia::io
