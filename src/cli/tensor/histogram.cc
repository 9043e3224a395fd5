// The second of two passes: where the bins lie follows from what statistics_of() found. In a sparse
// tensor only the stored values are looked at.
#include "cli/tensor/histogram.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <type_traits>
#include <utility>
#include <variant>

#include "cli/tensor/element_stream.h"
#include "cli/tensor/slice.h"
#include "inspect/block_cursor.h"
#include "state/tensor/slice.h"
#include "thalia/error.h"
#include "thalia/types.h"

namespace thalia::cli {
namespace {

// Elements as numbers to calculate with.

/// As f64, of which integers above 2^53 are rounded.
inline std::complex<double> complex_number(const Element& element) {
  return std::visit(
      [](const auto& value) {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_arithmetic_v<Value>) {
          return std::complex<double>(static_cast<double>(value));
        } else {
          return std::complex<double>(value.real(), value.imag());
        }
      },
      element);
}

/// The same; of a complex element its absolute value.
inline double magnitude_or_number(const Element& element) {
  return std::visit(
      [](const auto& value) {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_arithmetic_v<Value>) {
          return static_cast<double>(value);
        } else {
          return std::hypot(static_cast<double>(value.real()), static_cast<double>(value.imag()));
        }
      },
      element);
}

constexpr double kDeviations = 4;

void place_bins(Histogram& histogram) {
  const TensorStatistics& of = histogram.tensor.statistics;
  if (of.finite() == of.zeros) return;
  histogram.low = std::max(of.min, of.mean - kDeviations * of.deviation);
  histogram.high = std::min(of.max, of.mean + kDeviations * of.deviation);
  if (!(histogram.low < histogram.high)) {
    // All are the same, or nearly: one bin in the middle.
    const double half = std::max(std::abs(of.max) / 2, 1e-30);
    histogram.low = of.min - half;
    histogram.high = of.max + half;
  }
  histogram.bins.assign(kHistogramBins, 0);
}

void count(Histogram& histogram, DType dtype, ByteSpan bytes, std::uint64_t elements) {
  const double scale = static_cast<double>(kHistogramBins) / (histogram.high - histogram.low);
  for (std::uint64_t i = 0; i < elements; ++i) {
    const double number = magnitude_or_number(decode_element(dtype, bytes, i));
    if (number == 0 || !std::isfinite(number)) continue;
    if (number < histogram.low || number > histogram.high) {
      ++histogram.outside;
      continue;
    }
    const double bin = (number - histogram.low) * scale;
    ++histogram.bins[std::min(static_cast<std::size_t>(bin), kHistogramBins - 1)];
  }
}

}  // namespace

std::uint64_t Histogram::inside() const noexcept {
  return std::accumulate(bins.begin(), bins.end(), std::uint64_t{0});
}

Histogram histogram_of(const inspect::OpenedTensor& source, MeasuredTensor tensor,
                       const std::stop_token& stop) {
  Histogram histogram{.tensor = std::move(tensor)};
  place_bins(histogram);
  if (histogram.bins.empty()) return histogram;
  const DType dtype = source.layout.dtype;
  if (source.entries) {
    const ByteSpan values = source.entries->values();
    count(histogram, dtype, values, source.entries->tensor().nnz());
    return histogram;
  }
  inspect::BlockCursor cursor(whole(source.layout.shape).ranges, dtype, kBlockBytes);
  std::vector<std::byte> block;
  while (const auto ranges = cursor.next()) {
    if (stop.stop_requested()) throw CancelledError(ErrorCode::cancelled, "ended by a signal");
    const std::uint64_t elements = state::range_elements(*ranges);
    block.resize(state::packed_bytes(dtype, elements));
    source.read(*ranges, block);
    count(histogram, dtype, block, elements);
  }
  return histogram;
}

}  // namespace thalia::cli
