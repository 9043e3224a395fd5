#include "spiking/neuron.h"

#include <cmath>

namespace spiking {

Lif::Lif(const LifParameters& parameters)
    : parameters_(parameters),
      membrane_decay_(std::exp(-1.0f / parameters.tau_membrane_ms)),
      synapse_decay_(std::exp(-1.0f / parameters.tau_synapse_ms)) {}

void Lif::step(LifState& state, std::span<float> arriving, std::span<const float> scaling,
               std::span<const float> threshold, std::span<const float> drive, Slice slice) const {
  const float gain = 1 - membrane_decay_;
  for (std::size_t i = slice.begin; i < slice.end; ++i) {
    const float current = state.current[i] * synapse_decay_ + arriving[i] * scaling[i];
    arriving[i] = 0;
    state.current[i] = current;

    const float target = parameters_.rest_mv + current + drive[i - slice.begin];
    const float free = state.membrane[i] * membrane_decay_ + target * gain;
    const bool held = state.refractory[i] > 0;
    const bool spike = !held && free >= threshold[i];
    state.membrane[i] = held || spike ? parameters_.reset_mv : free;
    state.refractory[i] = spike ? parameters_.refractory_steps
                                : static_cast<std::uint8_t>(held ? state.refractory[i] - 1 : 0);
    state.spikes[i] = spike;
  }
}

}  // namespace spiking
