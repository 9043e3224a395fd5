#include "spiking/projection.h"

#include <algorithm>

namespace spiking {

void deliver(const Projection& projection, std::span<const Spike> spikes, std::uint64_t step,
             DelayRing& ring, Slice targets) {
  const auto rows = projection.weights.row_pointers();
  const auto columns = projection.weights.column_indices();
  const auto weights = projection.weights.values();
  if (!projection.delays) {
    const auto next = ring.arriving(step + 1);
    for (const Spike& spike : spikes) {
      const RowRange range = row_range(rows, columns, spike.neuron, targets.begin, targets.end);
      for (std::size_t k = range.begin; k < range.end; ++k)
        next[columns[k]] += weights[k] * spike.efficacy;
    }
    return;
  }
  const auto delays = projection.delays->values();
  for (const Spike& spike : spikes) {
    const RowRange range = row_range(rows, columns, spike.neuron, targets.begin, targets.end);
    for (std::size_t k = range.begin; k < range.end; ++k)
      ring.arriving(step + delays[k])[columns[k]] += weights[k] * spike.efficacy;
  }
}

void deliver(const DensePathway& pathway, std::span<const Spike> spikes, std::uint64_t step,
             DelayRing& ring, Slice targets) {
  const auto next = ring.arriving(step + 1);
  const std::size_t end = std::min<std::size_t>(targets.end, pathway.columns);
  for (const Spike& spike : spikes) {
    if (spike.neuron >= pathway.rows) break;
    const float* row = pathway.weights.data() + std::size_t{spike.neuron} * pathway.columns;
    for (std::size_t j = targets.begin; j < end; ++j) next[j] += row[j] * spike.efficacy;
  }
}

}  // namespace spiking
