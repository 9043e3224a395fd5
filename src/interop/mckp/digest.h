// The digest of a tensor while its pieces are compressed.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "codec/lossy/quantize.h"
#include "integrity/sha256.h"
#include "thalia/mckp.h"

namespace thalia::interop {

/// Of the bytes that a tensor will be restored to, as tensor_digest().
///
/// XXH3-128 is taken of pieces, so each thread does those of what it compresses. SHA-256 takes
/// bytes in their order, so one thread at a time can be at it: each thread that has compressed a
/// piece does a part of it, or goes on where another one is at it. So nobody waits, and no thread
/// is bound to one tensor.
class MckpDigest {
 public:
  /// `tensor` and `raw`, its bytes, are the same in each call.
  MckpDigest(LeafAlgorithm algorithm, std::uint64_t raw_bytes);
  /// What a thread does beside compressing bytes [begin, end) of the tensor; begin is a multiple of
  /// 1 MiB. Each byte is in one call.
  void advance(const MckpTensor& tensor, ByteSpan raw, std::uint64_t begin, std::uint64_t end);
  /// Once, after all of them, when no other thread uses this.
  Digest256 finish(const MckpTensor& tensor, ByteSpan raw);
  /// |number - restored|, after finish(); 0 where nothing is quantized.
  double largest_error() const noexcept { return loss_.largest_error; }

 private:
  void hash_in_order(const MckpTensor& tensor, ByteSpan raw, std::uint64_t end);

  LeafAlgorithm algorithm_;
  std::vector<Digest128> pieces_;
  std::mutex mutex_;  ///< of what is below
  std::uint64_t hashed_ = 0;
  integrity::Sha256 sha256_;
  codec::QuantizationLoss loss_;
};

}  // namespace thalia::interop
