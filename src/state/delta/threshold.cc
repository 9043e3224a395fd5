// Which elements keep the base's value: docs/format/deltas.md, "Thresholds". The base is what the
// chain makes, not what was once saved, so that the error of an element stays below the threshold
// however long the chain becomes. An element keeps all of the base's bits or none.
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "codec/float/conversion.h"
#include "state/delta/change.h"

namespace thalia::state {
namespace {

// Keeping the base's value never makes an element zero, nor a zero anything else: which weights
// exist is information. Rounding keeps the order: a distance that rounds to less than the threshold
// is less.
bool may_stay(double from, double to, double threshold) noexcept {
  if (!std::isfinite(from) || !std::isfinite(to)) return false;
  if ((from == 0) != (to == 0)) return false;
  return std::abs(to - from) < threshold;
}

// Elements have `parts` floats each, two of complex types; each of them has to be near enough.
// Equal bits are always near, NaN included.
template <typename Float>
void keep(const Float* base, const Float* now, std::size_t count, unsigned parts, double threshold,
          std::size_t width, ByteSpan base_bytes, MutableByteSpan bytes) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* const old_bits = base_bytes.data() + i * width;
    std::byte* const new_bits = bytes.data() + i * width;
    if (std::memcmp(old_bits, new_bits, width) == 0) continue;
    bool stays = true;
    for (unsigned p = 0; p < parts; ++p) {
      const std::size_t at = i * parts + p;
      const bool equal = std::memcmp(old_bits + p * width / parts, new_bits + p * width / parts,
                                     width / parts) == 0;
      stays = stays && (equal || may_stay(base[at], now[at], threshold));
    }
    if (stays) std::memcpy(new_bits, old_bits, width);
  }
}

template <typename Float>
void keep_typed(unsigned parts, double threshold, ByteSpan base, MutableByteSpan bytes) {
  const std::size_t floats = bytes.size() / sizeof(Float);
  std::vector<Float> from(floats);
  std::vector<Float> to(floats);
  std::memcpy(from.data(), base.data(), bytes.size());
  std::memcpy(to.data(), bytes.data(), bytes.size());
  keep(from.data(), to.data(), floats / parts, parts, threshold, parts * sizeof(Float), base,
       bytes);
}

// f16 and bf16 have no C++ type of their own: compared as f32, which holds them exactly.
void keep_halves(DType dtype, double threshold, ByteSpan base, MutableByteSpan bytes) {
  std::vector<float> from(bytes.size() / 2);
  std::vector<float> to(bytes.size() / 2);
  codec::convert_elements(dtype, DType::f32, base.first(bytes.size()),
                          std::as_writable_bytes(std::span(from)));
  codec::convert_elements(dtype, DType::f32, bytes, std::as_writable_bytes(std::span(to)));
  keep(from.data(), to.data(), from.size(), 1, threshold, 2, base, bytes);
}

}  // namespace

bool has_threshold(DType dtype) noexcept {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 ||
         dtype == DType::bf16 || dtype_is_complex(dtype);
}

void KeptWithin::apply(ByteSpan base, MutableByteSpan bytes) const {
  if (is_exact() || bytes.empty()) return;
  const unsigned parts = dtype_is_complex(dtype) ? 2 : 1;
  if (dtype == DType::f32 || dtype == DType::c64) {
    keep_typed<float>(parts, threshold, base, bytes);
  } else if (dtype == DType::f64 || dtype == DType::c128) {
    keep_typed<double>(parts, threshold, base, bytes);
  } else {
    keep_halves(dtype, threshold, base, bytes);
  }
}

}  // namespace thalia::state
