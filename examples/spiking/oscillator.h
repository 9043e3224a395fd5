// The rhythms that a region's neurons are driven with.
#pragma once

#include <span>
#include <vector>

namespace spiking {

struct Rhythm {
  const char* name;
  double frequency_hz;
  float amplitude_mv;
};

/// One element a rhythm each.
struct OscillatorState {
  explicit OscillatorState(std::span<const Rhythm> rhythms);

  std::vector<double> phase;  ///< in cycles, [0, 1)
  std::vector<double> frequency_hz;
};

/// Advances all phases by 1 ms.
void step_oscillators(OscillatorState& state);

/// The drive of all rhythms together now, mV.
float oscillator_drive(const OscillatorState& state, std::span<const Rhythm> rhythms);

}  // namespace spiking
