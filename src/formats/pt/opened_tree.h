// A source whose metadata have a tree, in which tensors are views of others, as one that has each
// tensor of the tree by itself: for formats that hold no views.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "formats/source/opened_file.h"
#include "thalia/options.h"

namespace thalia::formats::pt {

struct TreeTensors {
  /// With the names and shapes of the tree, a tree without views, and a loss for the memory that
  /// was shared. Holds the source that it was made of.
  std::shared_ptr<const OpenedFile> source;
  std::vector<std::size_t> stored;  ///< for each tensor, the one of that source that it lies in
};

/// nullopt where each tensor of the source is in the tree once and as it is, or there is no
/// tree that fits them. @throws FormatError (limit_exceeded); bad JSON.
std::optional<TreeTensors> tree_tensors(std::shared_ptr<const OpenedFile> source,
                                        const ReadLimits& limits);

}  // namespace thalia::formats::pt
