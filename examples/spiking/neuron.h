// Leaky integrate-and-fire neurons with exponentially decaying synaptic current.
//
//   dv/dt = (rest - v + current + drive) / tau_membrane      dc/dt = -current / tau_synapse
//
// solved exactly for input that is constant during a step of 1 ms. Units: mV and ms; the membrane
// resistance is 1, so a current is the voltage that it would hold the membrane at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "spiking/workers.h"

namespace spiking {

struct LifParameters {
  float tau_membrane_ms = 20;
  float tau_synapse_ms = 5;
  float rest_mv = -65;
  float reset_mv = -65;
  std::uint8_t refractory_steps = 2;
};

struct LifState {
  explicit LifState(std::size_t neurons)
      : membrane(neurons), current(neurons), refractory(neurons), spikes(neurons) {}

  std::vector<float> membrane;
  std::vector<float> current;
  std::vector<std::uint8_t> refractory;  ///< steps left in which the membrane is held at reset
  std::vector<std::uint8_t> spikes;      ///< 1 where the last step ended in a spike
};

class Lif {
 public:
  explicit Lif(const LifParameters& parameters);

  /// One step of the neurons in `slice`. `arriving` is consumed, which is to say zeroed. All spans
  /// have one element a neuron of the region, but `drive`, which has one a neuron of the slice.
  void step(LifState& state, std::span<float> arriving, std::span<const float> scaling,
            std::span<const float> threshold, std::span<const float> drive, Slice slice) const;

 private:
  LifParameters parameters_;
  float membrane_decay_;
  float synapse_decay_;
};

}  // namespace spiking
