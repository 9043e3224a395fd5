// Changed tensors of a state that are made together: many small ones keep all threads at work, and
// no thread waits at the end of each.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "integrity/content_hash.h"
#include "state/delta/tensor_chain.h"
#include "store/follow/held_tensors.h"
#include "store/follow/spare_memory.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::store {

/// Externally synchronised.
class TensorBatch {
 public:
  /// Borrows all.
  TensorBatch(const detail::OpenFile& top, const ReadOptions& read, FollowedValues& values,
              SpareMemory& spare);

  /// The last one of the values is what the chain makes: in memory of its own, or as what differs
  /// in the server's. Its bytes are there once run() is back, which may be at once. @throws as
  /// run(); std::bad_alloc.
  void add(state::TensorChain chain);
  /// Makes what was added since the last time, and holds it against its digests. @throws what
  /// reading the chain throws, with the names of the tensor.
  void run();

 private:
  struct Making {
    Making(state::TensorChain of, std::size_t number) : chain(std::move(of)), value(number) {}
    state::TensorChain chain;
    std::size_t value;        ///< its number in the values
    MutableByteSpan own{};    ///< memory that it is made in; empty: the server's is compared
    std::uint64_t piece = 0;  ///< bytes of one
    std::size_t first = 0;    ///< of its pieces, in the batch
    std::atomic<std::size_t> left{0};  ///< pieces that are not made
    std::vector<integrity::PieceDigest> digests{};
  };
  void make(Making& making, std::size_t piece);

  const detail::OpenFile& top_;
  const ReadOptions& read_;
  FollowedValues& values_;
  SpareMemory& spare_;
  /// What is compared with the server's memory is made here.
  const std::shared_ptr<SpareMemory> buffers_ = std::make_shared<SpareMemory>();
  std::deque<Making> makings_;
  std::size_t pieces_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace thalia::store
