// The arrays that are a region's state, each with the name, role and shape it has in a checkpoint.
// Saving and loading go through the same list, so that neither can forget one.
#pragma once

#include <string>
#include <vector>

#include "spiking/network.h"
#include "thalia/tensor.h"
#include "thalia/types.h"

namespace spiking {

struct StateField {
  thalia::TensorSpec spec;
  thalia::MutableByteSpan bytes;  ///< in the network
};

/// All dense arrays of region `r`, with the dense and learning state of the pathways that end in
/// it. The spans are valid as long as the network's arrays stay where they are.
std::vector<StateField> state_fields(Network& network, std::size_t r);

}  // namespace spiking
