// Levels of the substances that set how a region learns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace spiking {

enum Neuromodulator : std::size_t { kDopamine, kAcetylcholine, kNorepinephrine };
inline constexpr std::size_t kNeuromodulators = 3;

struct NeuromodulatorState {
  std::array<float, kNeuromodulators> level{0.2f, 0.5f, 0.3f};
  std::array<float, kNeuromodulators> baseline{0.2f, 0.5f, 0.3f};
};

/// Levels return to their baselines; every 50th step brings a reward, and with it dopamine.
void step_neuromodulators(NeuromodulatorState& state, std::uint64_t step);

}  // namespace spiking
