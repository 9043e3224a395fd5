// One tree of values and tensors as it is in a 0.1 file: its tensors, then its JSON text, which
// tells their places.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "thalia/state/value.h"

namespace thalia::formats {

struct PlannedTensor {
  std::uint64_t padding;  ///< zeros before it
  Tensor storable;
};

struct PlannedTree {
  std::vector<PlannedTensor> tensors;  ///< one after the other
  std::string json;                    ///< after the tensors
};

/// Plans the tensors from `offset` on, depth first, and moves it to where the JSON text begins.
/// @param aligned as V01WriteOptions::aligned. @throws UnsupportedError, UsageError, FormatError,
/// as write_v01().
PlannedTree plan_v01_tree(const Value& tree, bool aligned, std::uint64_t& offset);

using WriteBytes = std::function<void(ByteSpan)>;
void write_v01_tree(const PlannedTree& planned, const WriteBytes& write);

}  // namespace thalia::formats
