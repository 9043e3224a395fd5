#include "spiking/homeostasis.h"

#include <algorithm>

namespace spiking {

void step_homeostasis(HomeostaticState& state, std::span<const float> trace,
                      const HomeostasisParameters& parameters, Slice slice) {
  for (std::size_t i = slice.begin; i < slice.end; ++i) {
    const float excess = trace[i] - parameters.target_trace;
    state.thresholds[i] = std::clamp(state.thresholds[i] + parameters.threshold_rate_mv * excess,
                                     parameters.threshold_min_mv, parameters.threshold_max_mv);
    state.scaling_factors[i] =
        std::clamp(state.scaling_factors[i] * (1 - parameters.scaling_rate * excess), 0.5f, 2.0f);
  }
}

}  // namespace spiking
