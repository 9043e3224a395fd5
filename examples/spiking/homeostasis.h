// Homeostasis: neurons that fire too much get a higher threshold and feel their input less.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "spiking/workers.h"

namespace spiking {

struct HomeostasisParameters {
  float target_trace = 0.1f;  ///< mean of the spike trace at the rate to hold: rate × its tau
  float threshold_rate_mv = 0.01f;
  float scaling_rate = 0.0005f;
  float threshold_min_mv = -58;
  float threshold_max_mv = -40;
};

/// One element a neuron each.
struct HomeostaticState {
  HomeostaticState(std::size_t neurons, float threshold_mv)
      : thresholds(neurons, threshold_mv), scaling_factors(neurons, 1.0f) {}

  std::vector<float> thresholds;       ///< membrane potential of a spike, mV
  std::vector<float> scaling_factors;  ///< of synaptic input
};

void step_homeostasis(HomeostaticState& state, std::span<const float> trace,
                      const HomeostasisParameters& parameters, Slice slice);

}  // namespace spiking
