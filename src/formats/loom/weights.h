// Weights of layers as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "thalia/formats/loom_network.h"

namespace thalia::formats::loom {

StoredBytes owned_bytes(std::vector<std::byte> bytes);

/// loom_weight_count(). @throws FormatError (bad_value) if there is none.
std::uint64_t counted_weights(const LoomLayer& layer);

/// Little-endian f32 of a layer with weights: as many as it counts.
/// @throws FormatError (inconsistent) where its bytes are less; (bad_value, limit_exceeded).
std::vector<std::byte> master_bytes(const LoomLayer& layer, const ReadLimits& limits);

}  // namespace thalia::formats::loom
