// Building a network from a seed: the same bits on every machine, with any number of threads.
#pragma once

#include <cstdint>

#include "spiking/network.h"
#include "spiking/workers.h"

namespace spiking {

/// @throws std::invalid_argument below kMinNeurons.
Network build_network(std::uint32_t neurons, std::uint64_t seed, Workers& workers);

/// Regions and pathways with their sizes, without synapses: what a checkpoint is loaded into.
Network empty_network(std::span<const std::uint32_t> region_sizes);

}  // namespace spiking
