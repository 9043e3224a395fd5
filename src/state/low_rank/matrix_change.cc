#include "state/low_rank/matrix_change.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/parallel.h"
#include "codec/float/conversion.h"

namespace thalia::state {
namespace {

constexpr std::uint64_t kTurn = 1 << 16;  // elements that a thread makes at a time

}  // namespace

// Numbers become f64 a piece at a time: of the whole they would take more than all else here.
std::optional<std::vector<float>> matrix_change(const Elements& base, const Elements& now) {
  const std::size_t count = now.bytes.size() / (dtype_bits(now.dtype) / 8);
  std::vector<double> before(std::min<std::size_t>(count, kTurn)), after(before.size());
  std::vector<float> out(count);
  double strange = 0;
  for (std::size_t first = 0; first < count; first += kTurn) {
    const std::size_t here = std::min<std::size_t>(kTurn, count - first);
    const auto numbers = [&](const Elements& from, std::vector<double>& to) {
      const std::size_t width = dtype_bits(from.dtype) / 8;
      codec::convert_elements(from.dtype, DType::f64,
                              from.bytes.subspan(first * width, here * width),
                              std::as_writable_bytes(std::span(to).first(here)));
    };
    numbers(base, before);
    numbers(now, after);
    for (std::size_t i = 0; i < here; ++i) {
      const auto change = static_cast<float>(after[i] - before[i]);
      out[first + i] = change;
      // Infinity and NaN times 0 are NaN, any other number 0: one test at the end, no branch in the
      // loop.
      strange += static_cast<double>(change) * 0;
    }
  }
  if (std::isnan(strange)) return std::nullopt;
  return out;
}

void add_products(DType dtype, const codec::LowRankFactors& factors, MutableByteSpan elements,
                  unsigned threads) {
  const std::uint64_t width = dtype_bits(dtype) / 8, count = elements.size() / width;
  parallel_for((count + kTurn - 1) / kTurn, threads, [&](std::size_t turn) {
    const std::uint64_t first = turn * kTurn, here = std::min(kTurn, count - first);
    codec::add_low_rank(dtype, factors, first, elements.subspan(first * width, here * width));
  });
}

}  // namespace thalia::state
