// The whole network: regions, the pathways between them, and one step of all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "spiking/delay_ring.h"
#include "spiking/homeostasis.h"
#include "spiking/neuromodulators.h"
#include "spiking/neuron.h"
#include "spiking/oscillator.h"
#include "spiking/plan.h"
#include "spiking/plasticity.h"
#include "spiking/projection.h"
#include "spiking/short_term.h"
#include "spiking/spike_log.h"
#include "spiking/workers.h"

namespace spiking {

struct Region {
  Region(const RegionPlan& region_plan, std::uint32_t neurons);

  RegionPlan plan;
  std::uint32_t size;
  LifState lif;
  ShortTermState short_term;
  LearningState learning;
  HomeostaticState homeostasis;
  OscillatorState oscillators;
  NeuromodulatorState neuromodulators;
  DelayRing ring;
  Projection recurrent;
};

struct Pathway {
  PathwayPlan plan;
  Projection sparse;
  DensePathway dense;
};

struct Network {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;  ///< the next to run; with the seed, all there is to the random numbers
  std::vector<Region> regions;
  std::vector<Pathway> pathways;

  std::uint64_t neurons() const;
  std::uint64_t synapses() const;
};

/// Runs a network. The spikes depend on the network alone, not on the number of threads.
class Simulator {
 public:
  /// Borrows both.
  Simulator(Network& network, Workers& workers);

  /// One step of 1 ms.
  StepRecord step();
  /// The spikes of region `i` in the last step, in ascending order.
  const std::vector<Spike>& spikes(std::size_t i) const { return spikes_[i]; }

 private:
  void advance_neurons(unsigned worker);
  void deliver_spikes(unsigned worker);
  void fill_drive(std::size_t region, float rhythm, Slice slice, std::vector<float>& drive) const;

  Network& network_;
  Workers& workers_;
  Lif lif_;
  ShortTerm short_term_;
  Plasticity plasticity_;
  std::vector<std::vector<Spike>> spikes_;              ///< by region
  std::vector<std::vector<std::vector<Spike>>> found_;  ///< by worker and region
};

}  // namespace spiking
