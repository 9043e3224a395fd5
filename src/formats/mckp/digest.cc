// Hashes a tensor beside its compression. What is hashed are the bytes that a reader will restore,
// so quantized elements are quantized and restored here once more; the loss of that is measured on
// the way. Parts are of 1 MiB, so elements of types that can be quantized stay whole.
#include "formats/mckp/digest.h"

#include <algorithm>

#include "formats/mckp/content_hash_list.h"
#include "integrity/content_hash.h"

namespace thalia::formats {
namespace {

constexpr std::uint64_t kPart = 1 << 20;
// How much of SHA-256 a thread does for each piece. Twice the piece, because threads that find
// another one at it do none.
constexpr std::uint64_t kShare = 2;

// What a part of a tensor will be restored to.
class RestoredPart {
 public:
  ByteSpan of(const MckpTensor& tensor, ByteSpan part, codec::QuantizationLoss& loss) {
    if (!tensor.method.quantized) return part;
    const codec::UniformScale scale{.minimum = tensor.quantization->minimum,
                                    .scale = tensor.quantization->scale};
    codes_.resize(part.size() / (dtype_bits(tensor.dtype) / 8));
    restored_.resize(part.size());
    codec::quantize(tensor.dtype, part, tensor.quantization->bits, scale, codes_);
    codec::dequantize(tensor.dtype, codes_, scale, restored_);
    codec::measure_quantization(tensor.dtype, part, restored_, loss);
    return restored_;
  }

 private:
  std::vector<std::uint8_t> codes_;
  std::vector<std::byte> restored_;
};

ByteSpan part_at(ByteSpan raw, std::uint64_t begin, std::uint64_t end) {
  return raw.subspan(begin, std::min(kPart, end - begin));
}

}  // namespace

MckpDigest::MckpDigest(LeafAlgorithm algorithm, std::uint64_t raw_bytes) : algorithm_(algorithm) {
  if (algorithm_ == LeafAlgorithm::xxh3_128)
    pieces_.resize(raw_bytes / kPart + (raw_bytes % kPart != 0 ? 1 : 0));
}

void MckpDigest::advance(const MckpTensor& tensor, ByteSpan raw, std::uint64_t begin,
                         std::uint64_t end) {
  if (algorithm_ == LeafAlgorithm::sha256) {
    // Never waits: whoever holds the lock goes on, and finish() does what is left.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock) hash_in_order(tensor, raw, hashed_ + kShare * (end - begin));
    return;
  }
  RestoredPart restored;
  codec::QuantizationLoss loss;
  for (; begin < end; begin += kPart) {
    const ByteSpan part = restored.of(tensor, part_at(raw, begin, end), loss);
    // No lock: each part is in one call, so each element is written by one thread.
    pieces_[begin / kPart] = integrity::xxh3_128(part);
  }
  const std::lock_guard lock(mutex_);
  loss_.largest_error = std::max(loss_.largest_error, loss.largest_error);
}

Digest256 MckpDigest::finish(const MckpTensor& tensor, ByteSpan raw) {
  if (algorithm_ == LeafAlgorithm::sha256) {
    hash_in_order(tensor, raw, raw.size());
    return sha256_.finish();
  }
  return tensor_digest(integrity::xxh3_128(std::as_bytes(std::span(pieces_))));
}

void MckpDigest::hash_in_order(const MckpTensor& tensor, ByteSpan raw, std::uint64_t end) {
  RestoredPart restored;
  end = std::min<std::uint64_t>(end, raw.size());
  while (hashed_ < end) {
    // Always whole parts, so that elements stay whole.
    const ByteSpan part = part_at(raw, hashed_, raw.size());
    sha256_.update(restored.of(tensor, part, loss_));
    hashed_ += part.size();
  }
}

}  // namespace thalia::formats
