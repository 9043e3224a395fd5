// Compares numbers before and after a conversion in f32, or in f64 where they came from f64: so the
// difference of the two is exact. Counts and maxima do not depend on the order, so vectors and
// single numbers give the same answer.
#include "codec/float/loss.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "codec/float/environment.h"
#include "codec/float/portable.h"

#ifdef __x86_64__
#include <immintrin.h>
#define THALIA_TARGET __attribute__((target("avx2")))
#endif

namespace thalia::codec {
namespace {

template <typename Float>
void measure_each(const std::byte* before, const std::byte* after, std::size_t count,
                  ConversionLoss& loss) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = load_element<Float>(before, i);
    const auto result = load_element<Float>(after, i);
    if (!std::isfinite(number)) continue;
    if (std::isinf(result)) {
      ++loss.overflowed;
    } else {
      // Exact: both are multiples of the number's last bit, and lie near each other.
      const double error = std::fabs(static_cast<double>(number - result));
      if (error > loss.largest_error) loss.largest_error = error;
    }
  }
}

#ifdef __x86_64__
THALIA_TARGET inline __m256i load_words(const std::byte* at) noexcept {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

constexpr std::size_t kFloats = 8;
constexpr std::size_t kDoubles = 4;

unsigned bits_set(int mask) noexcept {
  return static_cast<unsigned>(std::popcount(static_cast<unsigned>(mask)));
}

THALIA_TARGET void loss_f32(const std::byte* before, const std::byte* after, std::size_t count,
                            ConversionLoss& loss) noexcept {
  const __m256 sign = _mm256_set1_ps(-0.0F);
  const __m256 infinity = _mm256_set1_ps(HUGE_VALF);
  __m256 largest = _mm256_setzero_ps();
  std::size_t i = 0;
  for (; i + kFloats <= count; i += kFloats) {
    const __m256 number = _mm256_castsi256_ps(load_words(before + 4 * i));
    const __m256 result = _mm256_castsi256_ps(load_words(after + 4 * i));
    // Comparisons with a NaN are false. A number that was NaN or infinite has a result that is,
    // too, so the second mask leaves it out of the error, and the first out of the overflows.
    const __m256 is_finite = _mm256_cmp_ps(_mm256_andnot_ps(sign, number), infinity, _CMP_LT_OQ);
    const __m256 is_result_finite =
        _mm256_cmp_ps(_mm256_andnot_ps(sign, result), infinity, _CMP_LT_OQ);
    const __m256 error = _mm256_andnot_ps(sign, _mm256_sub_ps(number, result));
    largest = _mm256_max_ps(largest, _mm256_and_ps(error, is_result_finite));
    loss.overflowed += bits_set(_mm256_movemask_ps(_mm256_andnot_ps(is_result_finite, is_finite)));
  }
  std::array<float, kFloats> errors;
  _mm256_storeu_ps(errors.data(), largest);
  loss.largest_error =
      std::max<double>(loss.largest_error, *std::max_element(errors.begin(), errors.end()));
  measure_each<float>(before + 4 * i, after + 4 * i, count - i, loss);
}

THALIA_TARGET void loss_f64(const std::byte* before, const std::byte* after, std::size_t count,
                            ConversionLoss& loss) noexcept {
  const __m256d sign = _mm256_set1_pd(-0.0);
  const __m256d infinity = _mm256_set1_pd(HUGE_VAL);
  __m256d largest = _mm256_setzero_pd();
  std::size_t i = 0;
  for (; i + kDoubles <= count; i += kDoubles) {
    const __m256d number = _mm256_castsi256_pd(load_words(before + 8 * i));
    const __m256d result = _mm256_castsi256_pd(load_words(after + 8 * i));
    const __m256d is_finite = _mm256_cmp_pd(_mm256_andnot_pd(sign, number), infinity, _CMP_LT_OQ);
    const __m256d is_result_finite =
        _mm256_cmp_pd(_mm256_andnot_pd(sign, result), infinity, _CMP_LT_OQ);
    const __m256d error = _mm256_andnot_pd(sign, _mm256_sub_pd(number, result));
    largest = _mm256_max_pd(largest, _mm256_and_pd(error, is_result_finite));
    loss.overflowed += bits_set(_mm256_movemask_pd(_mm256_andnot_pd(is_result_finite, is_finite)));
  }
  std::array<double, kDoubles> errors;
  _mm256_storeu_pd(errors.data(), largest);
  loss.largest_error =
      std::max(loss.largest_error, *std::max_element(errors.begin(), errors.end()));
  measure_each<double>(before + 8 * i, after + 8 * i, count - i, loss);
}

#undef THALIA_TARGET
#endif

using Measure = void (*)(const std::byte*, const std::byte*, std::size_t, ConversionLoss&) noexcept;

struct Measures {
  Measure f32;
  Measure f64;
};

Measures measures([[maybe_unused]] InstructionSet set) {
#ifdef __x86_64__
  if (set != InstructionSet::portable) return {loss_f32, loss_f64};
#endif
  return {measure_each<float>, measure_each<double>};
}

// Elements that are widened at a time; they stay in the first cache.
constexpr std::size_t kLossBlock = 1024;

// Whether every number of `from` is a number of `to`, so that nothing has to be read.
bool is_lossless(DType from, DType to) {
  if (from == to || to == DType::f64) return true;
  return to == DType::f32 && from != DType::f64;
}

}  // namespace

void measure_loss(DType from, DType to, ByteSpan before, ByteSpan after, ConversionLoss& loss,
                  InstructionSet set) {
  const std::size_t count = checked_count(from, to, before.size(), after.size());
  if (is_lossless(from, to)) return;
  const bool wide = from == DType::f64;
  const DType common = wide ? DType::f64 : DType::f32;
  const std::size_t from_bytes = dtype_bits(from) / 8, to_bytes = dtype_bits(to) / 8;
  std::array<std::byte, kLossBlock * sizeof(double)> widened_before, widened_after;
  for (std::size_t i = 0; i < count; i += kLossBlock) {
    const std::size_t n = std::min(kLossBlock, count - i);
    const auto widened = [&](DType dtype, ByteSpan bytes, auto& scratch) {
      if (dtype == common) return bytes.data();
      const MutableByteSpan out(scratch.data(), n * dtype_bits(common) / 8);
      convert_elements(dtype, common, bytes, out, set);
      return static_cast<const std::byte*>(scratch.data());
    };
    const std::byte* const numbers =
        widened(from, before.subspan(i * from_bytes, n * from_bytes), widened_before);
    const std::byte* const results =
        widened(to, after.subspan(i * to_bytes, n * to_bytes), widened_after);
    // Only around the arithmetic: convert_elements() sets its own.
    const StandardEnvironment environment;
    const Measures measure = measures(set);
    (wide ? measure.f64 : measure.f32)(numbers, results, n, loss);
  }
}

}  // namespace thalia::codec
