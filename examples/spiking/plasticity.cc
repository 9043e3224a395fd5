#include "spiking/plasticity.h"

#include <algorithm>
#include <cmath>

namespace spiking {

Plasticity::Plasticity(const PlasticityParameters& parameters)
    : parameters_(parameters),
      trace_decay_(std::exp(-1.0f / parameters.tau_trace_ms)),
      threshold_rate_(1 - std::exp(-1.0f / parameters.tau_threshold_ms)) {}

void Plasticity::step(LearningState& state, std::span<const std::uint8_t> spikes,
                      Slice slice) const {
  for (std::size_t i = slice.begin; i < slice.end; ++i) {
    const float trace = state.trace[i] * trace_decay_ + static_cast<float>(spikes[i]);
    state.trace[i] = trace;
    state.bcm_threshold[i] += (trace * trace - state.bcm_threshold[i]) * threshold_rate_;
  }
}

void Plasticity::learn(Projection& projection, std::span<const Spike> spikes, std::uint32_t step,
                       const LearningState& source, const LearningState& target, float dopamine,
                       Slice targets) const {
  const auto rows = projection.weights.row_pointers();
  const auto columns = projection.weights.column_indices();
  const auto weights = projection.weights.values();
  for (const Spike& spike : spikes) {
    const RowRange range = row_range(rows, columns, spike.neuron, targets.begin, targets.end);
    const auto silent_ms = static_cast<float>(step - source.last_spike[spike.neuron]);
    const float decay = std::exp(-silent_ms / parameters_.tau_eligibility_ms);
    for (std::size_t k = range.begin; k < range.end; ++k) {
      if (weights[k] <= 0) continue;
      const float post = target.trace[columns[k]];
      const float mark =
          projection.eligibility[k] * decay + post * (post - target.bcm_threshold[columns[k]]);
      projection.eligibility[k] = mark;
      // The lower bound is above zero: a synapse keeps its sign, and goes on learning.
      weights[k] = std::clamp(weights[k] + parameters_.rate * dopamine * mark, 0x1p-20f,
                              parameters_.max_weight);
    }
  }
}

void Plasticity::note_spikes(LearningState& state, std::span<const Spike> spikes,
                             std::uint32_t step) {
  for (const Spike& spike : spikes) state.last_spike[spike.neuron] = step;
}

}  // namespace spiking
