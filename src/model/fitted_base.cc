#include "model/fitted_base.h"

#include <algorithm>
#include <cstring>

namespace thalia::model {
namespace {

// Where the row (a run of the last dimension) begins in the base, in elements; -1 where the base
// does not have it.
std::int64_t base_row(const Shape& base, const Shape& shape, std::uint64_t row) {
  std::uint64_t place = 0;
  std::uint64_t stride = base[base.rank() - 1];
  for (unsigned d = shape.rank() - 1; d-- > 0;) {
    const std::uint64_t i = row % shape[d];
    row /= shape[d];
    if (i >= base[d]) return -1;
    place += i * stride;
    stride *= base[d];
  }
  return static_cast<std::int64_t>(place);
}

}  // namespace

void fit_elements(ByteSpan base, const Shape& base_shape, const Shape& shape, unsigned width,
                  std::uint64_t begin, MutableByteSpan out) {
  const std::uint64_t row_bytes = shape[shape.rank() - 1] * width;
  const std::uint64_t kept_bytes =
      std::min(shape[shape.rank() - 1], base_shape[shape.rank() - 1]) * width;
  while (!out.empty()) {
    const std::uint64_t row = begin / row_bytes;
    const std::uint64_t into = begin % row_bytes;
    const std::uint64_t length = std::min<std::uint64_t>(row_bytes - into, out.size());
    const std::int64_t from = kept_bytes > into ? base_row(base_shape, shape, row) : -1;
    const std::uint64_t kept = from < 0 ? 0 : std::min(length, kept_bytes - into);
    if (kept != 0) {
      std::memcpy(out.data(), base.data() + static_cast<std::uint64_t>(from) * width + into, kept);
    }
    std::memset(out.data() + kept, 0, length - kept);
    begin += length;
    out = out.subspan(length);
  }
}

}  // namespace thalia::model
