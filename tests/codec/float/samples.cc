#include "codec/float/samples.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace thalia::test {
namespace {

struct Layout {
  int mantissa_bits;
  int exponent_bits;
};

Layout layout_of(DType dtype) {
  return dtype == DType::f64   ? Layout{52, 11}
         : dtype == DType::f32 ? Layout{23, 8}
         : dtype == DType::f16 ? Layout{10, 5}
                               : Layout{7, 8};
}

}  // namespace

long double value_of(DType dtype, std::uint64_t bits) {
  const auto [mantissa_bits, exponent_bits] = layout_of(dtype);
  const std::uint64_t one = 1;
  const std::uint64_t mantissa = bits & ((one << mantissa_bits) - 1);
  const auto exponent = static_cast<int>((bits >> mantissa_bits) & ((one << exponent_bits) - 1));
  const int bias = (1 << (exponent_bits - 1)) - 1;
  long double value = 0;
  if (exponent == 2 * bias + 1) {
    value = HUGE_VALL;
  } else {
    const auto significand =
        static_cast<long double>(mantissa + (exponent == 0 ? 0 : one << mantissa_bits));
    value = std::ldexp(significand, std::max(exponent, 1) - bias - mantissa_bits);
  }
  return (bits >> (mantissa_bits + exponent_bits)) != 0 ? -value : value;
}

const std::vector<long double>& all_finite(DType dtype) {
  const auto fill = [](DType of) {
    const auto [mantissa_bits, exponent_bits] = layout_of(of);
    std::vector<long double> values(((1u << exponent_bits) - 1) << mantissa_bits);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_of(of, i);
    return values;
  };
  static const std::vector<long double> kF16 = fill(DType::f16);
  static const std::vector<long double> kBF16 = fill(DType::bf16);
  return dtype == DType::f16 ? kF16 : kBF16;
}

std::uint64_t nearest(DType dtype, long double number) {
  const std::vector<long double>& values = all_finite(dtype);
  const std::uint64_t sign = std::signbit(number) ? 0x8000 : 0;
  const long double magnitude = std::fabs(number);
  const std::size_t above =
      std::lower_bound(values.begin(), values.end(), magnitude) - values.begin();
  if (above == 0) return sign;
  const std::size_t below = above - 1;
  // After the last one is what would come next, were there one more exponent.
  const long double upper =
      above < values.size() ? values[above] : 2 * values[below] - values[below - 1];
  const long double up = upper - magnitude;
  const long double down = magnitude - values[below];
  return sign | (up < down || (up == down && above % 2 == 0) ? above : below);
}

std::vector<std::uint64_t> rounding_samples(DType dtype) {
  const auto [mantissa_bits, exponent_bits] = layout_of(dtype);
  const std::uint64_t one = 1;
  const std::uint64_t mask = (one << mantissa_bits) - 1;
  std::vector<std::uint64_t> samples;
  std::uint64_t random = 1;
  for (std::uint64_t high = 0; high < one << (exponent_bits + 1); ++high) {
    const std::uint64_t exponent = high & ((one << exponent_bits) - 1);
    const std::uint64_t base = high << mantissa_bits;
    samples.push_back(base);
    if (exponent == (one << exponent_bits) - 1) continue;  // NaNs
    samples.push_back(base | 1);
    samples.push_back(base | mask);
    for (int tail = 1; tail <= mantissa_bits; ++tail) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      const std::uint64_t half = one << (tail - 1);
      for (const std::uint64_t last : {std::uint64_t{0}, half * 2}) {
        const std::uint64_t kept = ((random >> 12) & mask & ~(half * 4 - 1)) | last;
        for (const std::uint64_t rest : {half - 1, half, half + 1, random & (half - 1)})
          samples.push_back(base | ((kept | rest) & mask));
      }
    }
  }
  return samples;
}

std::vector<std::byte> elements_of(DType dtype, const std::vector<std::uint64_t>& bits) {
  const std::size_t size = dtype_bits(dtype) / 8;
  std::vector<std::byte> elements(bits.size() * size);
  for (std::size_t i = 0; i < bits.size(); ++i)
    std::memcpy(elements.data() + i * size, &bits[i], size);
  return elements;
}

std::uint64_t element_at(DType dtype, ByteSpan elements, std::size_t i) {
  const std::size_t size = dtype_bits(dtype) / 8;
  std::uint64_t bits = 0;
  std::memcpy(&bits, elements.subspan(i * size, size).data(), size);
  return bits;
}

}  // namespace thalia::test
