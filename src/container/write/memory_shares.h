// How a save shares out Work::memory_bytes. The parts add up to it, and nothing else divides it.
#pragma once

#include <cstdint>

#include "base/parallel.h"
#include "thalia/options.h"

namespace thalia::container {

struct MemoryShares {
  explicit MemoryShares(const Work& work)
      : MemoryShares(work.memory_bytes.value_or(kDefaultMemoryBytes)) {}
  explicit constexpr MemoryShares(std::uint64_t memory_bytes)
      : tails(memory_bytes / 4),
        gathered(memory_bytes / 2),
        queue(memory_bytes - tails - gathered) {}

  std::uint64_t tails;     ///< ends of payloads, kept until the file is complete
  std::uint64_t gathered;  ///< chunks on their way through the pipeline, extents not yet whole
  std::uint64_t queue;     ///< extents on their way to the disk meanwhile
  /// The same once all payloads have come and nothing is gathered any more.
  constexpr std::uint64_t last_queues() const { return gathered + queue; }
};

}  // namespace thalia::container
