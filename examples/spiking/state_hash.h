// One number for everything that a network is at a moment: synapses, membranes, traces, all of it.
#pragma once

#include <cstdint>

#include "spiking/network.h"

namespace spiking {

/// Equal for equal bits. FNV-1a over 64-bit words; a difference, not an attack, is what it finds.
std::uint64_t state_hash(Network& network);

}  // namespace spiking
