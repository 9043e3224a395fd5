// Learning with three factors: what a synapse's two neurons did marks it eligible to change, and
// dopamine turns marks into changes of weight. The mark follows Bienenstock, Cooper and Munro
// (1982): activity of the target above its sliding threshold strengthens, below it weakens.
//
// All work is done when a spike comes down the synapse; nothing is stepped for silent ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "spiking/projection.h"
#include "spiking/short_term.h"
#include "spiking/workers.h"

namespace spiking {

struct PlasticityParameters {
  float tau_trace_ms = 20;
  float tau_eligibility_ms = 200;
  float tau_threshold_ms = 1000;
  float rate = 0.02f;
  float max_weight = 2;
};

/// One element a neuron each.
struct LearningState {
  explicit LearningState(std::size_t neurons)
      : trace(neurons), bcm_threshold(neurons, 0.1f), last_spike(neurons) {}

  std::vector<float> trace;               ///< recent spikes, one at a spike and decaying
  std::vector<float> bcm_threshold;       ///< slow mean of the trace's square
  std::vector<std::uint32_t> last_spike;  ///< step of the last spike; 0: none yet
};

class Plasticity {
 public:
  explicit Plasticity(const PlasticityParameters& parameters);

  /// One step of the neurons in `slice`.
  void step(LearningState& state, std::span<const std::uint8_t> spikes, Slice slice) const;

  /// Updates eligibility and weights of the synapses from `spikes` to the neurons in `targets`.
  /// `source` is still without the spikes of `step`. Weights that are not above zero stay.
  void learn(Projection& projection, std::span<const Spike> spikes, std::uint32_t step,
             const LearningState& source, const LearningState& target, float dopamine,
             Slice targets) const;

  /// Records the spikes once every projection has learned from them.
  static void note_spikes(LearningState& state, std::span<const Spike> spikes, std::uint32_t step);

 private:
  PlasticityParameters parameters_;
  float trace_decay_;
  float threshold_rate_;
};

}  // namespace spiking
