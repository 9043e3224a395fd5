// What the network is made of: its regions, what drives them, and who projects to whom.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "spiking/homeostasis.h"
#include "spiking/neuron.h"
#include "spiking/oscillator.h"
#include "spiking/plasticity.h"
#include "spiking/short_term.h"

namespace spiking {

struct RegionPlan {
  const char* name;
  std::uint32_t per_mille;         ///< of the network's neurons
  std::uint32_t inhibitory_every;  ///< every k-th neuron is inhibitory
  float bias_mv;                   ///< constant drive
  std::span<const Rhythm> rhythms;
};

struct PathwayPlan {
  std::uint32_t source;  ///< number of a region
  std::uint32_t target;
  std::uint32_t mean_degree;  ///< synapses that leave a source neuron
  bool plastic;
};

/// Everything that is the same in all regions.
struct NetworkParameters {
  LifParameters lif;
  ShortTermParameters short_term;
  PlasticityParameters plasticity;
  HomeostasisParameters homeostasis;
  float threshold_mv = -50;
  float noise_mv = 40;  ///< half the width of the uniform noise in the drive
  std::uint32_t recurrent_degree = 72;
  std::uint32_t dense_extent = 512;  ///< rows and columns of a dense pathway, at most
};

std::span<const RegionPlan> region_plans();
std::span<const PathwayPlan> pathway_plans();
const NetworkParameters& network_parameters();

/// Neurons of each region; together exactly `neurons`.
std::vector<std::uint32_t> region_sizes(std::uint32_t neurons);

/// The fewest neurons with which every region has some of each kind.
inline constexpr std::uint32_t kMinNeurons = 200;

/// The parameters of a region as a JSON object, for its config in the file.
std::string config_json(const RegionPlan& plan);

}  // namespace spiking
