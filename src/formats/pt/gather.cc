#include "formats/pt/gather.h"

#include <array>
#include <cstring>

namespace thalia::formats::pt {

void gather(ByteSpan storage, DType dtype, const Shape& shape,
            std::span<const std::uint64_t> stride, std::uint64_t offset, MutableByteSpan out) {
  const std::size_t width = dtype_bits(dtype) / 8;
  if (out.empty()) return;
  // The last dimensions whose elements follow each other are copied as one run.
  unsigned outer = shape.rank();
  std::uint64_t run = 1;
  while (outer > 0 && (shape[outer - 1] == 1 || stride[outer - 1] == run)) run *= shape[--outer];
  const std::size_t run_bytes = run * width;
  std::array<std::uint64_t, Shape::kMaxRank> index{};
  std::uint64_t at = offset;
  for (std::size_t done = 0;; done += run_bytes) {
    std::memcpy(out.data() + done, storage.data() + at * width, run_bytes);
    unsigned dimension = outer;
    for (;;) {
      if (dimension == 0) return;
      --dimension;
      if (++index[dimension] < shape[dimension]) {
        at += stride[dimension];
        break;
      }
      at -= (shape[dimension] - 1) * stride[dimension];
      index[dimension] = 0;
    }
  }
}

void negate(DType dtype, bool imaginary_alone, MutableByteSpan elements) noexcept {
  // The width of a number: a complex element is aligned as each of its two numbers.
  const std::size_t width = dtype_alignment(dtype);
  const std::size_t step = imaginary_alone ? 2 * width : width;
  // Little endian: the sign is the last byte's highest bit.
  for (std::size_t end = step; end <= elements.size(); end += step)
    elements[end - 1] ^= std::byte{0x80};
}

}  // namespace thalia::formats::pt
