#include "spiking/network.h"

#include <algorithm>

#include "spiking/random.h"

namespace spiking {
namespace {

/// Neurons advanced together: few enough for their drive to stay in the first-level cache.
constexpr std::size_t kBlock = 1024;

}  // namespace

Region::Region(const RegionPlan& region_plan, std::uint32_t neurons)
    : plan(region_plan),
      size(neurons),
      lif(neurons),
      short_term(neurons, network_parameters().short_term),
      learning(neurons),
      homeostasis(neurons, network_parameters().threshold_mv),
      oscillators(region_plan.rhythms),
      ring(neurons) {}

std::uint64_t Network::neurons() const {
  std::uint64_t sum = 0;
  for (const Region& region : regions) sum += region.size;
  return sum;
}

std::uint64_t Network::synapses() const {
  std::uint64_t sum = 0;
  for (const Region& region : regions) sum += region.recurrent.weights.nnz();
  for (const Pathway& pathway : pathways)
    sum += pathway.sparse.weights.nnz() + pathway.dense.weights.size();
  return sum;
}

Simulator::Simulator(Network& network, Workers& workers)
    : network_(network),
      workers_(workers),
      lif_(network_parameters().lif),
      short_term_(network_parameters().short_term),
      plasticity_(network_parameters().plasticity),
      spikes_(network.regions.size()),
      found_(workers.count(), std::vector<std::vector<Spike>>(network.regions.size())) {}

StepRecord Simulator::step() {
  for (Region& region : network_.regions) {
    step_oscillators(region.oscillators);
    step_neuromodulators(region.neuromodulators, network_.step);
  }

  workers_.run([this](unsigned worker) { advance_neurons(worker); });
  for (std::size_t r = 0; r < spikes_.size(); ++r) {
    spikes_[r].clear();
    for (const auto& found : found_)
      spikes_[r].insert(spikes_[r].end(), found[r].begin(), found[r].end());
  }

  workers_.run([this](unsigned worker) { deliver_spikes(worker); });
  SpikeHash hash;
  for (std::size_t r = 0; r < spikes_.size(); ++r) {
    Plasticity::note_spikes(network_.regions[r].learning, spikes_[r], network_.step);
    hash.add_region(static_cast<std::uint32_t>(r), spikes_[r]);
  }
  return {network_.step++, hash.count(), hash.value()};
}

void Simulator::advance_neurons(unsigned worker) {
  std::vector<float> drive;
  for (std::size_t r = 0; r < network_.regions.size(); ++r) {
    Region& region = network_.regions[r];
    const float rhythm = oscillator_drive(region.oscillators, region.plan.rhythms);
    const auto arriving = region.ring.arriving(network_.step);
    const Slice part = slice_of(region.size, workers_.count(), worker);
    std::vector<Spike>& found = found_[worker][r];
    found.clear();
    for (std::size_t begin = part.begin; begin < part.end; begin += kBlock) {
      const Slice block{begin, std::min(begin + kBlock, part.end)};
      fill_drive(r, rhythm, block, drive);
      lif_.step(region.lif, arriving, region.homeostasis.scaling_factors,
                region.homeostasis.thresholds, drive, block);
      short_term_.step(region.short_term, region.lif.spikes, block, found);
      plasticity_.step(region.learning, region.lif.spikes, block);
      step_homeostasis(region.homeostasis, region.learning.trace, network_parameters().homeostasis,
                       block);
    }
  }
}

void Simulator::fill_drive(std::size_t region, float rhythm, Slice slice,
                           std::vector<float>& drive) const {
  const Random noise(network_.seed, Stream::noise, static_cast<std::uint32_t>(region));
  const float mean = network_.regions[region].plan.bias_mv + rhythm;
  const float width = network_parameters().noise_mv;
  drive.resize((slice.end - slice.begin + 3) / 4 * 4);
  for (std::size_t i = 0; i < drive.size(); i += 4) {
    const Random4 draws =
        noise.at(network_.step, static_cast<std::uint32_t>((slice.begin + i) / 4));
    for (std::size_t k = 0; k < 4; ++k)
      drive[i + k] = mean + width * (2 * unit_float(draws[k]) - 1);
  }
}

void Simulator::deliver_spikes(unsigned worker) {
  for (std::size_t r = 0; r < network_.regions.size(); ++r) {
    Region& region = network_.regions[r];
    const Slice targets = slice_of(region.size, workers_.count(), worker);
    plasticity_.learn(region.recurrent, spikes_[r], network_.step, region.learning, region.learning,
                      region.neuromodulators.level[kDopamine], targets);
    deliver(region.recurrent, spikes_[r], network_.step, region.ring, targets);
  }
  for (Pathway& pathway : network_.pathways) {
    const auto& spikes = spikes_[pathway.plan.source];
    Region& target = network_.regions[pathway.plan.target];
    const Slice targets = slice_of(target.size, workers_.count(), worker);
    if (pathway.plan.plastic) {
      plasticity_.learn(pathway.sparse, spikes, network_.step,
                        network_.regions[pathway.plan.source].learning, target.learning,
                        target.neuromodulators.level[kDopamine], targets);
    }
    deliver(pathway.sparse, spikes, network_.step, target.ring, targets);
    deliver(pathway.dense, spikes, network_.step, target.ring, targets);
  }
}

}  // namespace spiking
