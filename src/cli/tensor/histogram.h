// How the elements of a tensor are spread.
#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

#include "cli/tensor/measured_tensor.h"
#include "inspect/opened_tensor.h"

namespace thalia::cli {

/// Elements that are finite and not zero, in bins of one width. The zeros of a sparse or pruned
/// tensor would hide all else, and what lies far out would make it one bin: both are counted apart.
struct Histogram {
  MeasuredTensor tensor{};
  double low = 0;  ///< where the bins begin, and end; within four deviations of the mean
  double high = 0;
  std::vector<std::uint64_t> bins{};  ///< empty if no element is finite and not zero
  std::uint64_t outside = 0;          ///< not zero, and below `low` or above `high`

  std::uint64_t inside() const noexcept;
};

inline constexpr std::size_t kHistogramBins = 48;

/// Reads the elements in pieces, after measured() has. Complex ones count by their absolute values.
/// @throws what reading them throws; CancelledError.
Histogram histogram_of(const inspect::OpenedTensor& source, MeasuredTensor tensor,
                       const std::stop_token& stop);

}  // namespace thalia::cli
