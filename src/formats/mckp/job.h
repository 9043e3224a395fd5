// What the threads of an MckpWriter do.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "codec/lossy/quantize.h"
#include "formats/mckp/format.h"
#include "integrity/sha256.h"
#include "state/quantize/payload.h"
#include "thalia/formats/mckp.h"

namespace thalia::formats {

// The digest of a tensor while its pieces are compressed.

/// The digest of the bytes that a tensor will be restored to, as tensor_digest().
///
/// XXH3-128 is computed over pieces, so each thread hashes what it compresses. SHA-256 takes bytes
/// in order, so one thread at a time can work on it: a thread that has compressed a piece hashes a
/// part, or goes on with the next piece if another thread is at it. So nobody waits, and no thread
/// is tied to one tensor.
class MckpDigest {
 public:
  /// `tensor` and `raw`, its bytes, are the same in each call.
  MckpDigest(LeafAlgorithm algorithm, std::uint64_t raw_bytes);
  /// What a thread does beside compressing bytes [begin, end) of the tensor; begin is a multiple of
  /// 1 MiB. Each byte is in one call.
  void advance(const MckpTensor& tensor, ByteSpan raw, std::uint64_t begin, std::uint64_t end);
  /// Once, after all of them, when no other thread uses this.
  Digest256 finish(const MckpTensor& tensor, ByteSpan raw);
  /// |number - restored|, after finish(); 0 if nothing is quantized.
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

/// One tensor while it is compressed.
struct MckpWork {
  MckpWork(LeafAlgorithm digests, std::uint64_t raw_bytes) : digest(digests, raw_bytes) {}

  MckpTensor stored;  ///< all but what compressing tells
  Tensor tensor;
  Tensor base;  ///< where stored.method.delta, but of low rank or of steps
  /// The payload of a delta of low rank or of steps; `tensor` is what comes out.
  std::vector<std::byte> payload{};
  double largest_error = 0;  ///< of that
  MckpDigest digest;
};

/// The codec that the options ask for, or the usual one.
inline Codec codec_of(const MckpWriteOptions& options) {
  return options.compression.codec.value_or(Codec::plane_entropy);
}

/// Whether a tensor becomes codes, if all its elements are finite.
bool mckp_quantizes(std::string_view name, const Tensor& tensor,
                    const MckpQuantizationOptions& options);

/// Chooses how a tensor is stored. `base` is looked at only if it is of the same kind. `generation`
/// is that of a delta of low rank.
std::shared_ptr<MckpWork> plan_mckp_tensor(std::string name, Tensor tensor,
                                           std::optional<Tensor> base,
                                           const MckpWriteOptions& options,
                                           state::LossyGeneration generation);

/// A piece of a tensor's payload.
struct MckpJob {
  std::shared_ptr<MckpWork> tensor;
  std::uint64_t begin = 0;  ///< of the coded form
  std::uint64_t end = 0;
  std::vector<std::byte> out{};

  bool is_last() const noexcept { return end == mckp_coded_length(tensor->stored); }
  /// Makes `out`, and a part of the tensor's digest.
  void run(int level);
};

}  // namespace thalia::formats
