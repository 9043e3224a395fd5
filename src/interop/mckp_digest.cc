#include "interop/mckp_digest.h"

#include <algorithm>
#include <vector>

namespace thalia::interop {
namespace {

constexpr std::uint64_t kPart = 1 << 20;
constexpr std::uint64_t kRestored = 1 << 16;  ///< elements at a time

}  // namespace

void MckpDigest::advance(const MckpTensor& tensor, ByteSpan raw, std::uint64_t bytes) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) hash(tensor, raw, bytes);
}

Digest256 MckpDigest::finish(const MckpTensor& tensor, ByteSpan raw) {
  const std::lock_guard lock(mutex_);
  hash(tensor, raw, raw.size());
  return sha256_.finish();
}

void MckpDigest::hash(const MckpTensor& tensor, ByteSpan raw, std::uint64_t bytes) {
  const std::uint64_t end = hashed_ + std::min<std::uint64_t>(bytes, raw.size() - hashed_);
  if (!tensor.method.quantized) {
    for (; hashed_ < end; hashed_ += std::min(kPart, end - hashed_))
      sha256_.update(raw.subspan(hashed_, std::min(kPart, end - hashed_)));
    return;
  }
  // Of the numbers that the codes stand for; always whole parts, so that elements stay whole.
  const std::uint64_t width = dtype_bits(tensor.dtype) / 8;
  const codec::UniformScale scale{.minimum = tensor.quantization->minimum,
                                  .scale = tensor.quantization->scale};
  std::vector<std::uint8_t> codes;
  std::vector<std::byte> restored;
  while (hashed_ < end) {
    const ByteSpan part =
        raw.subspan(hashed_, std::min<std::uint64_t>(raw.size() - hashed_, kRestored * width));
    codes.resize(part.size() / width);
    restored.resize(part.size());
    codec::quantize(tensor.dtype, part, tensor.quantization->bits, scale, codes);
    codec::dequantize(tensor.dtype, codes, scale, restored);
    codec::measure_quantization(tensor.dtype, part, restored, loss_);
    sha256_.update(restored);
    hashed_ += part.size();
  }
}

}  // namespace thalia::interop
