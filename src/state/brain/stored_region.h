// A region's state as what a file holds of it, and back. docs/format/states.md, "States".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "state/brain/stored_tensor.h"
#include "thalia/region.h"
#include "thalia/state/brain.h"

namespace thalia::state {

inline constexpr std::string_view kPathwayPrefix = "pathway:";
/// The member of a region's metadata that holds the state's tree without its tensors.
inline constexpr std::string_view kTreeMember = "thalia_state";
inline constexpr std::string_view kBrainRegion = "brain:state";
/// The member of its metadata that says what the matrices of connections were.
inline constexpr std::string_view kConnectionsMember = "connections";

struct StoredRegion {
  RegionSpec spec;
  std::vector<StoredTensor> tensors;
};

/// The region as a file holds it. Tensors that are stored as they are share their bytes with the
/// region's. `path` is the region's from the state's root: "regions.cortex". @throws UsageError
/// if the state has text that is no UTF-8, or a tensor in the metadata, naming region and path.
StoredRegion store_region(std::string name, const BrainRegion& region, const std::string& path,
                          const StoreOptions& options);

/// Reads the region: texts, and all of its tensors; raw ones as views that keep the file open.
/// @throws as load_tensor(); FormatError, UnsupportedError for a `thalia_state` that breaks
/// docs/format/states.md.
BrainRegion load_region(const RegionView& view, const LoadContext& context);

/// The state as the region's texts alone have it: without the tensors that no tree names, and with
/// null in the place of those that it does. @throws as load_region().
Value load_tree(const RegionView& view, const ReadLimits& limits);

}  // namespace thalia::state
