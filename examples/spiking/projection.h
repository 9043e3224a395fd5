// Synapses between two populations, or of one with itself: who is reached, how strongly, how late.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "spiking/csr.h"
#include "spiking/delay_ring.h"
#include "spiking/short_term.h"
#include "spiking/workers.h"

namespace spiking {

/// Rows are source neurons, columns target neurons.
struct Projection {
  CsrMatrix<float> weights;                       ///< below zero from inhibitory neurons
  std::optional<CsrMatrix<std::uint8_t>> delays;  ///< in steps, 1 to kMaxDelay; none: all are 1
  std::vector<float> eligibility;  ///< one a synapse; empty where the weights do not learn
};

/// Adds what `spikes` of step `step` bring to the target neurons in `targets`. Each target's sums
/// are added up in the order of the spikes, so however the targets are divided among threads, the
/// result has the same bits.
void deliver(const Projection& projection, std::span<const Spike> spikes, std::uint64_t step,
             DelayRing& ring, Slice targets);

/// All-to-all synapses from the first `rows` neurons of a population to the first `columns` of
/// another, each with a delay of one step.
struct DensePathway {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::vector<float> weights;  ///< row-major
};

void deliver(const DensePathway& pathway, std::span<const Spike> spikes, std::uint64_t step,
             DelayRing& ring, Slice targets);

}  // namespace spiking
