// Compares numbers before and after a conversion in f32, or in f64 if they came from f64: so the
// difference of the two is exact. Counts and maxima do not depend on the order, so vectors and
// single numbers give the same answer.
#include "codec/float/loss.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/dtype_facts.h"
#include "codec/float/environment.h"
#include "codec/float/portable.h"

#ifdef __x86_64__
#include <immintrin.h>
#define THALIA_TARGET __attribute__((target("avx2")))
#endif

namespace thalia::codec {
namespace {

// The least normal numbers of the two types. Results that are smaller have fewer bits than the
// type.
struct LeastNormal {
  double before;
  double after;
};

template <typename Float>
void measure_each(const std::byte* before, const std::byte* after, std::size_t count,
                  const LeastNormal& normal, ConversionLoss& loss) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = load_element<Float>(before, i);
    const auto result = load_element<Float>(after, i);
    if (!std::isfinite(number)) continue;
    if (std::isinf(result)) {
      ++loss.infinite;
    } else if (std::isnan(result)) {
      ++loss.nan;
    } else {
      const Float size = std::fabs(result);
      if (size == 0)
        loss.zeroed += number != 0;
      else if (size < normal.after)
        loss.subnormal += std::fabs(number) >= normal.before;
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

// The operations that the loop below is made of, once a type.
struct Floats {
  using Float = float;
  using Vector = __m256;
  static constexpr std::size_t kCount = 8;

  THALIA_TARGET static Vector load(const std::byte* at) {
    return _mm256_castsi256_ps(load_words(at));
  }
  THALIA_TARGET static Vector all(Float value) { return _mm256_set1_ps(value); }
  THALIA_TARGET static Vector both(Vector a, Vector b) { return _mm256_and_ps(a, b); }
  THALIA_TARGET static Vector second_only(Vector a, Vector b) { return _mm256_andnot_ps(a, b); }
  THALIA_TARGET static Vector less(Vector a, Vector b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
  THALIA_TARGET static Vector is_nan(Vector a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
  THALIA_TARGET static Vector difference(Vector a, Vector b) { return _mm256_sub_ps(a, b); }
  THALIA_TARGET static Vector larger(Vector a, Vector b) { return _mm256_max_ps(a, b); }
  THALIA_TARGET static unsigned mask(Vector a) {
    return static_cast<unsigned>(_mm256_movemask_ps(a));
  }
  THALIA_TARGET static unsigned count(Vector a) {
    return static_cast<unsigned>(std::popcount(mask(a)));
  }
  THALIA_TARGET static void store(Float* at, Vector a) { _mm256_storeu_ps(at, a); }
};

struct Doubles {
  using Float = double;
  using Vector = __m256d;
  static constexpr std::size_t kCount = 4;

  THALIA_TARGET static Vector load(const std::byte* at) {
    return _mm256_castsi256_pd(load_words(at));
  }
  THALIA_TARGET static Vector all(Float value) { return _mm256_set1_pd(value); }
  THALIA_TARGET static Vector both(Vector a, Vector b) { return _mm256_and_pd(a, b); }
  THALIA_TARGET static Vector second_only(Vector a, Vector b) { return _mm256_andnot_pd(a, b); }
  THALIA_TARGET static Vector less(Vector a, Vector b) { return _mm256_cmp_pd(a, b, _CMP_LT_OQ); }
  THALIA_TARGET static Vector is_nan(Vector a) { return _mm256_cmp_pd(a, a, _CMP_UNORD_Q); }
  THALIA_TARGET static Vector difference(Vector a, Vector b) { return _mm256_sub_pd(a, b); }
  THALIA_TARGET static Vector larger(Vector a, Vector b) { return _mm256_max_pd(a, b); }
  THALIA_TARGET static unsigned mask(Vector a) {
    return static_cast<unsigned>(_mm256_movemask_pd(a));
  }
  THALIA_TARGET static unsigned count(Vector a) {
    return static_cast<unsigned>(std::popcount(mask(a)));
  }
  THALIA_TARGET static void store(Float* at, Vector a) { _mm256_storeu_pd(at, a); }
};

template <typename V>
THALIA_TARGET void measure_vectors(const std::byte* before, const std::byte* after,
                                   std::size_t count, const LeastNormal& normal,
                                   ConversionLoss& loss) noexcept {
  using Float = typename V::Float;
  using Vector = typename V::Vector;
  constexpr std::size_t kBytes = sizeof(Float);
  const Vector sign = V::all(Float{-0.0});
  const Vector zero = V::all(0);
  const Vector infinity = V::all(std::numeric_limits<Float>::infinity());
  const Vector normal_before = V::all(static_cast<Float>(normal.before));
  const Vector normal_after = V::all(static_cast<Float>(normal.after));
  Vector largest = zero;
  std::size_t i = 0;
  for (; i + V::kCount <= count; i += V::kCount) {
    const Vector number = V::load(before + kBytes * i);
    const Vector result = V::load(after + kBytes * i);
    const Vector number_size = V::second_only(sign, number);
    const Vector result_size = V::second_only(sign, result);
    // Comparisons with a NaN are false. A number that was NaN or infinite has a result that is,
    // too, so the second mask leaves it out of the error, and the first out of the overflows.
    const Vector was_finite = V::less(number_size, infinity);
    const Vector is_finite = V::less(result_size, infinity);
    const Vector error = V::second_only(sign, V::difference(number, result));
    largest = V::larger(largest, V::both(error, is_finite));
    // Most vectors lose nothing but bits: one look for all counts together.
    const Vector is_small = V::less(result_size, normal_after);
    const Vector is_strange = V::second_only(is_finite, was_finite);
    if ((V::mask(is_small) | V::mask(is_strange)) == 0) continue;
    const Vector is_nan = V::both(is_strange, V::is_nan(result));
    loss.nan += V::count(is_nan);
    loss.infinite += V::count(V::second_only(is_nan, is_strange));
    const Vector is_not_zero = V::less(zero, result_size);
    loss.zeroed +=
        V::count(V::second_only(is_not_zero, V::both(is_small, V::less(zero, number_size))));
    loss.subnormal += V::count(
        V::second_only(V::less(number_size, normal_before), V::both(is_small, is_not_zero)));
  }
  std::array<Float, V::kCount> errors;
  V::store(errors.data(), largest);
  loss.largest_error =
      std::max<double>(loss.largest_error, *std::max_element(errors.begin(), errors.end()));
  measure_each<Float>(before + kBytes * i, after + kBytes * i, count - i, normal, loss);
}

#undef THALIA_TARGET
#endif

using Measure = void (*)(const std::byte*, const std::byte*, std::size_t, const LeastNormal&,
                         ConversionLoss&) noexcept;

struct Measures {
  Measure f32;
  Measure f64;
};

Measures measures([[maybe_unused]] InstructionSet set) {
#ifdef __x86_64__
  if (set != InstructionSet::portable) return {measure_vectors<Floats>, measure_vectors<Doubles>};
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

ConversionLoss& ConversionLoss::operator+=(const ConversionLoss& other) noexcept {
  infinite += other.infinite;
  nan += other.nan;
  zeroed += other.zeroed;
  subnormal += other.subnormal;
  largest_error = std::max(largest_error, other.largest_error);
  return *this;
}

void measure_loss(DType from, DType to, ByteSpan before, ByteSpan after, ConversionLoss& loss,
                  InstructionSet set) {
  const std::size_t count = checked_count(from, to, before.size(), after.size());
  if (is_lossless(from, to)) return;
  const bool wide = from == DType::f64;
  const DType common = wide ? DType::f64 : DType::f32;
  const LeastNormal normal{least_normal(from), least_normal(to)};
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
    (wide ? measure.f64 : measure.f32)(numbers, results, n, normal, loss);
  }
}

}  // namespace thalia::codec
