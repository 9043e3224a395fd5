// What the elements of a tensor are like, whichever format its file has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "inspect/opened_tensor.h"
#include "thalia/options.h"
#include "thalia/state/tensor_value.h"
#include "thalia/types.h"

namespace thalia::cli {

struct MeasuredTensor {
  std::string region;  ///< empty: it is in none
  std::string name;
  TensorLayout layout{};
  TensorStatistics statistics{};
};

/// Measures one after the other, of which small ones are read side by side. Those that wait for
/// their turn, and may have been restored, take 64 MiB and one more.
class Measuring {
 public:
  explicit Measuring(Work work) : work_(std::move(work)) {}
  /// @throws what reading it, or those added before it, throws; CancelledError.
  void add(inspect::OpenedTensor source);
  /// All of them, in their order; to be called once. @throws as add().
  std::vector<MeasuredTensor> finish();

 private:
  void measure_waiting();

  Work work_;
  std::vector<MeasuredTensor> done_{};
  std::vector<SlicedTensor> waiting_{};
  std::vector<std::size_t> places_{};  ///< in done_, of those that wait
  std::uint64_t bytes_ = 0;            ///< of those that wait
};

/// Reads all of its elements, in pieces. @throws what reading it throws; CancelledError.
MeasuredTensor measured(const inspect::OpenedTensor& source, const Work& work);

}  // namespace thalia::cli
