// What the new elements of a tensor are: weights are drawn, thresholds are the mean of the old
// ones, state begins at rest. docs/states.md, "Growth".
#pragma once

#include <string_view>

#include "model/tensor/corner.h"
#include "thalia/brain_region.h"
#include "thalia/growth.h"

namespace thalia::model {

/// Of a tensor of the region's state that grows to `shape`; none where new elements are zero.
/// @throws UsageError (dtype_mismatch) where they cannot be, and the element type holds no numbers.
ElementFill fill_of(std::string_view region_name, const BrainRegion& region, std::string_view path,
                    const Tensor& tensor, const Shape& shape, const GrowthOptions& options);

/// Of a connection's weights, likewise; `name` is SOURCE->TARGET.
ElementFill connection_fill(std::string_view name, const Tensor& weights, const Shape& shape,
                            const GrowthOptions& options);

/// Every new element the same.
ElementFill constant_fill(double value);
/// Of all elements, those of a sparse tensor that are not stored included; 0 of no elements.
double mean_of(const Tensor& tensor);

}  // namespace thalia::model
