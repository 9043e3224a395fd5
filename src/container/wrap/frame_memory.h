// The limit on memory while a file is compressed or restored: how many frames there are at once.
// Large frames get fewer threads rather than more memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "base/fail.h"
#include "base/parallel.h"
#include "thalia/files.h"

namespace thalia::container {

struct FrameMemory {
  static constexpr std::uint64_t kMost = 512 << 20;  ///< or one frame

  /// @param frame_bytes that a frame takes in memory, raw and compressed together.
  FrameMemory(std::uint64_t frame_bytes, unsigned wanted_threads) {
    const std::uint64_t affordable =
        std::max<std::uint64_t>(kMost / std::max<std::uint64_t>(frame_bytes, 1), 1);
    threads =
        static_cast<unsigned>(std::min<std::uint64_t>(resolve_threads(wanted_threads), affordable));
    // Two jobs a thread: one that it works on, and one that is done and waits for its turn.
    jobs = static_cast<std::size_t>(std::min<std::uint64_t>(2 * threads, affordable));
  }
  unsigned threads;
  std::size_t jobs;
};

/// Both could be one file under two names. @throws UsageError (bad_argument).
inline void check_not_the_source(const std::filesystem::path& source,
                                 const std::filesystem::path& target) {
  if (!is_same_file(source, target)) return;
  throw UsageError(ErrorCode::bad_argument, "the target is the source",
                   {.path = target.string(), .field = "target"});
}

}  // namespace thalia::container
