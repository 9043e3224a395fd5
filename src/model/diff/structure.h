// The differences between tables and texts of two checkpoints. No payload is read.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "thalia/diff.h"

namespace thalia::model {

/// Compares the members of two objects by their keys; an empty text is an object without members.
std::vector<FieldDiff> diff_objects(std::string_view before, std::string_view after,
                                    const ReadLimits& limits);

/// nullopt where nothing differs.
std::optional<TensorDiff> diff_tensors(const TensorView& before, const TensorView& after);
std::optional<RegionDiff> diff_regions(const RegionView& before, const RegionView& after,
                                       const ReadLimits& limits);
/// As diff_tensors(), for two connections with the same pair of names.
std::optional<ConnectionDiff> diff_connections(const ConnectionView& before,
                                               const ConnectionView& after);

TensorFacts tensor_facts(const TensorView& tensor);

}  // namespace thalia::model
