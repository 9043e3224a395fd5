// The digest of a tensor while its pieces are compressed.
#pragma once

#include <cstdint>
#include <mutex>

#include "codec/quantize.h"
#include "integrity/sha256.h"
#include "thalia/mckp.h"

namespace thalia::interop {

/// SHA-256 of the bytes that a tensor will be restored to. SHA-256 takes them in their order, so
/// one thread at a time can be at it: each thread that has compressed a piece does a part of it, or
/// goes on where another one is at it. So nobody waits, and no thread is bound to one tensor.
class MckpDigest {
 public:
  /// `tensor` and `raw`, its bytes, are the same in each call.
  /// Hashes `bytes` more, or nothing where another thread does.
  void advance(const MckpTensor& tensor, ByteSpan raw, std::uint64_t bytes);
  /// Hashes what is left. Once, when no other thread uses this.
  Digest256 finish(const MckpTensor& tensor, ByteSpan raw);
  /// |number - restored|, after finish(); 0 where nothing is quantized.
  double largest_error() const noexcept { return loss_.largest_error; }

 private:
  void hash(const MckpTensor& tensor, ByteSpan raw, std::uint64_t bytes);

  std::mutex mutex_;
  std::uint64_t hashed_ = 0;
  integrity::Sha256 sha256_;
  codec::QuantizationLoss loss_;
};

}  // namespace thalia::interop
