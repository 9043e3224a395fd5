// Conversion of a whole tensor. The values of any encoding lie at the end of its payload, so that
// one loop converts dense and sparse tensors; index arrays are copied as they are.

#include "state/tensor/conversion.h"

#include <algorithm>
#include <mutex>

#include "base/parallel.h"
#include "codec/float/conversion.h"

namespace thalia::state {
namespace {

// Elements that one thread converts at a time: small enough for the nearest caches, as they are
// read twice if the loss is measured.
constexpr std::uint64_t kConversionPiece = 16 << 10;
// Elements that one thread has at a time: some hundred microseconds of work.
constexpr std::uint64_t kShare = 1 << 20;

void convert_in_pieces(DType from, DType to, ByteSpan in, MutableByteSpan out, unsigned threads,
                       codec::ConversionLoss* loss) {
  const std::uint64_t in_width = dtype_bits(from) / 8;
  const std::uint64_t out_width = dtype_bits(to) / 8;
  const std::uint64_t count = in.size() / in_width;
  std::mutex mutex;
  parallel_for((count + kShare - 1) / kShare, threads, [&](std::size_t i) {
    const std::uint64_t end = std::min((i + 1) * kShare, count);
    codec::ConversionLoss lost;
    for (std::uint64_t first = i * kShare; first < end; first += kConversionPiece) {
      const std::uint64_t elements = std::min(kConversionPiece, end - first);
      const ByteSpan before = in.subspan(first * in_width, elements * in_width);
      const MutableByteSpan after = out.subspan(first * out_width, elements * out_width);
      codec::convert_elements(from, to, before, after);
      if (loss != nullptr) codec::measure_loss(from, to, before, after, lost);
    }
    if (loss == nullptr) return;
    const std::lock_guard lock(mutex);
    *loss += lost;
  });
}

}  // namespace

Tensor convert_tensor(const Tensor& tensor, DType dtype, unsigned threads,
                      codec::ConversionLoss* loss) {
  if (tensor.dtype() == dtype) return tensor;
  // Refuses types that cannot be converted before memory is taken.
  codec::checked_count(tensor.dtype(), dtype, 0, 0);
  TensorLayout layout = tensor.layout();
  layout.dtype = dtype;
  return Tensor::filled(layout, [&](MutableByteSpan out) {
    // The values follow the index arrays. The arrays do not depend on the type, but the padding
    // between them and the values does: it is written anew, as zeros.
    const ByteSpan values = tensor.values();
    const std::uint64_t value_bytes =
        values.size() / (dtype_bits(tensor.dtype()) / 8) * (dtype_bits(dtype) / 8);
    const std::uint64_t before = out.size() - value_bytes;
    const std::uint64_t indices =
        std::min<std::uint64_t>(before, tensor.bytes().size() - values.size());
    std::copy_n(tensor.bytes().begin(), indices, out.begin());
    std::fill(out.begin() + indices, out.begin() + before, std::byte{0});
    convert_in_pieces(tensor.dtype(), dtype, values, out.subspan(before), threads, loss);
  });
}

}  // namespace thalia::state
