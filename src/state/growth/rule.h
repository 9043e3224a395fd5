// What the new elements of a tensor are: weights are drawn, thresholds get the mean of the old
// ones, and state begins at rest. docs/format/growth.md, "Growth".
#pragma once

#include <string_view>

#include "state/tensor/corner.h"
#include "thalia/state/brain.h"
#include "thalia/state/growth.h"

namespace thalia::state {

/// The fill for a tensor of the region's state that grows to `shape`; none if new elements are
/// zero. @throws UsageError (dtype_mismatch) if they are not zero and the element type holds no
/// numbers.
ElementFill fill_of(std::string_view region_name, const BrainRegion& region, std::string_view path,
                    const Tensor& tensor, const Shape& shape, const GrowthOptions& options);

/// The fill for a connection's weights; `name` is SOURCE->TARGET. @throws as fill_of().
ElementFill connection_fill(std::string_view name, const Tensor& weights, const Shape& shape,
                            const GrowthOptions& options);

/// Gives every new element the same value.
ElementFill constant_fill(double value);
/// The mean of all elements, including those that a sparse tensor does not store; 0 if there are
/// none.
double mean_of(const Tensor& tensor);

}  // namespace thalia::state
