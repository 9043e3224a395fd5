// A delta without what follows from the rest of it. docs/format/packed.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "container/plan/file_plan.h"
#include "thalia/types.h"

namespace thalia::container {

/// @param contents all of a delta that was written from `plan`, whose tensors lie in `file_order`.
/// @return nullopt where it does not come out again byte for byte, or packing it does not pay.
std::optional<std::vector<std::byte>> pack(FilePlan& plan,
                                           std::span<const std::uint32_t> file_order,
                                           ByteSpan contents);

}  // namespace thalia::container
