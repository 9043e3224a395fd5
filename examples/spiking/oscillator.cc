#include "spiking/oscillator.h"

#include <cmath>
#include <numbers>

namespace spiking {

OscillatorState::OscillatorState(std::span<const Rhythm> rhythms) : phase(rhythms.size()) {
  for (const Rhythm& rhythm : rhythms) frequency_hz.push_back(rhythm.frequency_hz);
}

void step_oscillators(OscillatorState& state) {
  for (std::size_t i = 0; i < state.phase.size(); ++i) {
    const double phase = state.phase[i] + state.frequency_hz[i] / 1000;
    state.phase[i] = phase - std::floor(phase);
  }
}

float oscillator_drive(const OscillatorState& state, std::span<const Rhythm> rhythms) {
  double sum = 0;
  for (std::size_t i = 0; i < state.phase.size(); ++i)
    sum += static_cast<double>(rhythms[i].amplitude_mv) *
           std::cos(2 * std::numbers::pi * state.phase[i]);
  return static_cast<float>(sum);
}

}  // namespace spiking
