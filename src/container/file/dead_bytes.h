// What an append left behind in a file.
#pragma once

#include <cstdint>
#include <vector>

#include "format/extent.h"
#include "format/header.h"

namespace thalia::container {

/// Bytes before the commit record that belong to no section, beyond the padding between
/// sections. `regions` are the extents of the region index.
std::uint64_t dead_bytes(const format::Header& header, std::vector<format::Extent> regions);

}  // namespace thalia::container
