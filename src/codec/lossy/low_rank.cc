// The order of all additions is part of the format (docs/format/deltas.md, "low_rank_delta"): for
// each element the products are summed in the order of the factors, in f64, and never fused with
// the addition. Blocks run along a row, so vectors work on neighbouring columns and leave that
// order alone.
#include "codec/lossy/low_rank.h"

#include <algorithm>
#include <array>
#include <span>

#include "codec/float/conversion.h"
#include "codec/float/environment.h"
#include "codec/float/range.h"

namespace thalia::codec {
namespace {

// Columns of a block: sums and elements take 8 KiB and stay in the first cache.
constexpr std::size_t kSumBlock = 512;

}  // namespace

void add_low_rank(DType dtype, const LowRankFactors& factors, std::uint64_t first,
                  MutableByteSpan elements) {
  const std::uint64_t width = dtype_bits(dtype) / 8;
  std::uint64_t left = checked_count(dtype, dtype, elements.size(), elements.size());
  const StandardEnvironment environment;
  const double largest = largest_finite(dtype);
  alignas(64) std::array<double, kSumBlock> sums;
  alignas(64) std::array<double, kSumBlock> numbers;
  std::byte* at = elements.data();
  while (left != 0) {
    const std::uint64_t row = first / factors.columns;
    const std::uint64_t column = first % factors.columns;
    const std::size_t count = std::min({kSumBlock, left, factors.columns - column});
    sums.fill(0);
    for (std::uint64_t k = 0; k < factors.rank; ++k) {
      const double scale = factors.left[k * factors.rows + row];
      const double* const values = factors.right.data() + k * factors.columns + column;
      for (std::size_t i = 0; i < count; ++i) sums[i] += scale * values[i];
    }
    const MutableByteSpan some(at, count * width);
    convert_elements(dtype, DType::f64, some,
                     std::as_writable_bytes(std::span(numbers).first(count)));
    for (std::size_t i = 0; i < count; ++i) {
      const double number = numbers[i] + sums[i];
      // A result out of range becomes the nearest finite number; a NaN passes both comparisons.
      const double low = number < -largest ? -largest : number;
      numbers[i] = low > largest ? largest : low;
    }
    convert_elements(DType::f64, dtype, std::as_bytes(std::span(numbers).first(count)), some);
    at += some.size();
    first += count;
    left -= count;
  }
}

}  // namespace thalia::codec
