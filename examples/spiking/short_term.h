// Short-term plasticity: a synapse tires with each spike, and recovers (Tsodyks and Markram, 1997).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "spiking/workers.h"

namespace spiking {

/// A spike and how strongly it is felt by the neurons it reaches.
struct Spike {
  std::uint32_t neuron;
  float efficacy;
};

struct ShortTermParameters {
  float use = 0.4f;  ///< share of the resources that a rested synapse spends on a spike
  float tau_facilitation_ms = 50;
  float tau_recovery_ms = 200;
};

/// One pair a neuron, for all synapses that leave it.
struct ShortTermState {
  ShortTermState(std::size_t neurons, const ShortTermParameters& parameters)
      : u(neurons, parameters.use), x(neurons, 1.0f) {}

  std::vector<float> u;  ///< share spent on a spike
  std::vector<float> x;  ///< resources left
};

class ShortTerm {
 public:
  explicit ShortTerm(const ShortTermParameters& parameters);

  /// One step of the neurons in `slice`: all recover, those that spiked spend, and are appended to
  /// `out` in ascending order.
  void step(ShortTermState& state, std::span<const std::uint8_t> spikes, Slice slice,
            std::vector<Spike>& out) const;

 private:
  float use_;
  float facilitation_rate_;
  float recovery_rate_;
};

}  // namespace spiking
