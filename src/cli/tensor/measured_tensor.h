// What the elements of a tensor are like, whichever format its file has.
#pragma once

#include <string>

#include "cli/tensor/tensor_source.h"
#include "thalia/options.h"
#include "thalia/statistics.h"
#include "thalia/tensor_layout.h"

namespace thalia::cli {

struct MeasuredTensor {
  std::string region;  ///< empty: it is in none
  std::string name;
  TensorLayout layout{};
  TensorStatistics statistics{};
};

/// Reads all of its elements, in pieces. @throws what reading it throws; CancelledError.
MeasuredTensor measured(const TensorSource& source, const Work& work);

}  // namespace thalia::cli
