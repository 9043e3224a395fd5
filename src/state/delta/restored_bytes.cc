// A quantized tensor as the base of a change: its codes stay in memory, small as they are, and
// elements are restored as they are asked for. QuantizedArrays restores whole pieces, so that a
// part of one goes through a buffer.

#include "state/delta/restored_bytes.h"

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "format/payload.h"
#include "format/tensor.h"
#include "io/memory/allocation_limit.h"

namespace thalia::state {
RestoredBytes::RestoredBytes(const detail::OpenFile& file, std::uint32_t number,
                             io::MemoryBudget& budget)
    : stored_(file, number, budget),
      width_(dtype_bits(stored_.entry().dtype) / 8),
      size_(*format::shape_of(stored_.entry()).element_count() * width_) {}

const container::QuantizedArrays& RestoredBytes::arrays() const {
  once_.run([&] {
    const detail::OpenFile& file = stored_.file();
    const format::TensorEntry& entry = stored_.entry();
    if (!stored_.is_raw()) stored_.budget().take("payload", stored_.size());
    const ByteSpan codes = stored_.part(0, stored_.size(), decoded_);
    arrays_.emplace(entry, file.quantized_tensor(entry), codes);
  });
  return *arrays_;
}

void RestoredBytes::read(std::uint64_t begin, MutableByteSpan out) const {
  if (out.empty()) return;
  const container::QuantizedArrays& own = arrays();
  const std::uint64_t piece_bytes = container::QuantizedArrays::kPieceElements * width_;
  std::vector<std::byte> whole;
  while (!out.empty()) {
    const std::uint64_t piece = begin / piece_bytes;
    const std::uint64_t into = begin % piece_bytes;
    const std::uint64_t length = own.piece_elements(piece) * width_;
    const std::uint64_t part = std::min<std::uint64_t>(length - into, out.size());
    if (part == length) {
      own.restore(piece, out.first(part));
    } else {
      whole.resize(length);
      own.restore(piece, whole);
      std::memcpy(out.data(), whole.data() + into, part);
    }
    begin += part;
    out = out.subspan(part);
  }
}

}  // namespace thalia::state
