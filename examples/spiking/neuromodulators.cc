#include "spiking/neuromodulators.h"

namespace spiking {

void step_neuromodulators(NeuromodulatorState& state, std::uint64_t step) {
  constexpr std::array<float, kNeuromodulators> kReturnRate{0.02f, 0.01f, 0.005f};
  for (std::size_t i = 0; i < kNeuromodulators; ++i)
    state.level[i] += (state.baseline[i] - state.level[i]) * kReturnRate[i];
  if (step % 50 == 0) state.level[kDopamine] += 0.5f;
}

}  // namespace spiking
