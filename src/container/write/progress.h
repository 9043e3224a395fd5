// How far a save is, for the caller who wants to know.
#pragma once

#include <cstdint>
#include <mutex>

#include "thalia/options.h"

namespace thalia::container {

/// Counts logical bytes of payloads that are on their way to the disk. Internally synchronised.
class ProgressMeter {
 public:
  /// @param report borrowed; may be empty.
  ProgressMeter(const Progress& report, std::uint64_t total) : report_(report), total_(total) {}

  void add(std::uint64_t bytes) {
    if (!report_ || bytes == 0) return;
    const std::lock_guard lock(mutex_);
    done_ += bytes;
    report_(done_, total_);
  }

 private:
  const Progress& report_;
  const std::uint64_t total_;
  std::mutex mutex_;
  std::uint64_t done_ = 0;
};

}  // namespace thalia::container
