// The element types of .mst files.
#pragma once

#include <optional>
#include <string_view>

#include "thalia/types.h"

namespace thalia::formats::mst {

/// "F32", …: what the original writes. Empty for a dtype that the format lacks.
std::string_view mst_dtype_name(DType dtype) noexcept;
/// Takes the names that it writes, and the second names that its reader also takes: "float32".
std::optional<DType> mst_dtype_from_name(std::string_view name) noexcept;

/// Bytes of an element whose bytes the original groups: 2 or 4, and 0 for types that it leaves.
unsigned plane_width(DType dtype) noexcept;

}  // namespace thalia::formats::mst
