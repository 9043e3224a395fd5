// The structural half of verify: every table against every other, without reading payloads.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "container/file/open_file.h"
#include "container/verify/findings.h"
#include "format/extent.h"

namespace thalia::container {

/// An extent of the file that something accounts for.
struct Covered {
  format::Extent extent;
  const char* section;
  std::uint32_t region;  ///< kConnectivity or above: none
};

/// A tensor that structure allows to be read.
struct SoundTensor {
  std::uint32_t region;
  std::uint32_t number;
};

struct Structure {
  std::vector<Covered> covered;      ///< by offset
  std::vector<Covered> sections;     ///< what the covered extents lie in; by offset
  std::vector<SoundTensor> tensors;  ///< in the order of the directory
};

/// Checks tables, names, order, placement and JSON texts; what is wrong goes to `findings`.
Structure verify_structure(const detail::OpenFile& file, Findings& findings);

/// Bytes that nothing accounts for must be zero, but between the sections of a file that was
/// appended to, where older generations lie; and no two extents may overlap. @param read_padding
/// false: only the overlaps, and the directory.
void verify_padding(const detail::OpenFile& file, const Structure& structure, bool read_padding,
                    Findings& findings);

}  // namespace thalia::container
