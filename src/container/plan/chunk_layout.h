// What elements a chunk of a tensor holds. docs/format/format.md, "Payloads".
#pragma once

#include <cstdint>

#include "codec/cpu/element_layout.h"
#include "container/plan/file_plan.h"

namespace thalia::container {

/// The layout of the logical bytes [begin, end) of a tensor: that of its elements, or of the index
/// array that the bytes are in. A range across two arrays has the layout of its greater part.
codec::ElementLayout chunk_layout(const TensorPlan& tensor, std::uint64_t begin, std::uint64_t end);

}  // namespace thalia::container
