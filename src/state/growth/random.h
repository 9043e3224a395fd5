// The numbers that new weights are made of. docs/format/growth.md, "Growth".
#pragma once

#include <cstdint>
#include <string_view>

#include "base/philox.h"
#include "state/tensor/corner.h"
#include "thalia/state/growth.h"

namespace thalia::state {

/// @throws UsageError (bad_argument) for options out of bounds.
void check_growth_options(const GrowthOptions& options);

/// Bytes 0 to 7 of the SHA-256 of seed (u64), region, a zero byte and path, as two u32.
PhiloxKey growth_key(std::uint64_t seed, std::string_view region, std::string_view path);

/// New weights of a matrix of this shape, as `options` say; each depends on the seed, the two names
/// and its own indices alone, with xavier on the shape too.
ElementFill random_weights(const GrowthOptions& options, std::string_view region,
                           std::string_view path, const Shape& shape);

}  // namespace thalia::state
