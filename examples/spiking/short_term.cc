#include "spiking/short_term.h"

#include <cmath>

namespace spiking {

ShortTerm::ShortTerm(const ShortTermParameters& parameters)
    : use_(parameters.use),
      facilitation_rate_(1 - std::exp(-1.0f / parameters.tau_facilitation_ms)),
      recovery_rate_(1 - std::exp(-1.0f / parameters.tau_recovery_ms)) {}

void ShortTerm::step(ShortTermState& state, std::span<const std::uint8_t> spikes, Slice slice,
                     std::vector<Spike>& out) const {
  for (std::size_t i = slice.begin; i < slice.end; ++i) {
    state.u[i] += (use_ - state.u[i]) * facilitation_rate_;
    state.x[i] += (1 - state.x[i]) * recovery_rate_;
  }
  for (std::size_t i = slice.begin; i < slice.end; ++i) {
    if (spikes[i] == 0) continue;
    state.u[i] += use_ * (1 - state.u[i]);
    const float efficacy = state.u[i] * state.x[i];
    state.x[i] -= efficacy;
    out.push_back({static_cast<std::uint32_t>(i), efficacy});
  }
}

}  // namespace spiking
