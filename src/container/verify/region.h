// A region's headers against the tensors that the directory gives it. docs/format/format.md,
// "Region".
#pragma once

#include <cstdint>

#include "container/file/open_file.h"
#include "container/verify/region_facts.h"

namespace thalia::container {

/// The pieces of region `r` are those that its tensors make; its state headers say which there are.
/// @throws FormatError (inconsistent) for the first field that differs.
void verify_region(const detail::OpenFile& file, std::uint32_t r, const VerifiedRegion& facts);

}  // namespace thalia::container
