#include "cli/tensor/measured_tensor.h"

#include <utility>

#include "state/tensor/slice.h"

namespace thalia::cli {

MeasuredTensor measured(const inspect::OpenedTensor& source, const Work& work) {
  Measuring measuring(work);
  measuring.add(source);
  return std::move(measuring.finish().front());
}

void Measuring::add(inspect::OpenedTensor source) {
  // So much, and that threads come and go does not count.
  constexpr std::uint64_t kTogether = 64 << 20;
  const TensorLayout layout = source.layout;
  done_.push_back({.region = source.region, .name = source.name, .layout = layout});
  if (source.entries) {
    done_.back().statistics = statistics_of(source.entries->tensor());
    return;
  }
  waiting_.push_back(
      {.dtype = layout.dtype, .shape = layout.shape, .read = std::move(source.read)});
  places_.push_back(done_.size() - 1);
  bytes_ += state::packed_bytes(layout.dtype, layout.shape.element_count().value_or(0));
  if (bytes_ >= kTogether) measure_waiting();
}

std::vector<MeasuredTensor> Measuring::finish() {
  measure_waiting();
  return std::move(done_);
}

void Measuring::measure_waiting() {
  const std::vector<TensorStatistics> found = statistics_of(waiting_, work_);
  for (std::size_t i = 0; i < found.size(); ++i) done_[places_[i]].statistics = found[i];
  waiting_.clear();
  places_.clear();
  bytes_ = 0;
}

}  // namespace thalia::cli
