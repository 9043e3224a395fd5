// The directory's header and entries against the rules of docs/format/format.md, "Directory". No
// I/O, no allocation but for an error. Every check runs before the value is used to find anything
// else.
#pragma once

#include <cstdint>

#include "format/chunk.h"
#include "format/connectivity.h"
#include "format/delta.h"
#include "format/directory.h"
#include "format/extent.h"
#include "format/header.h"
#include "format/region.h"
#include "format/tensor.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::format {

/// Everything but the CRC: counts, and array offsets as they follow from each other, inside
/// directory_length.
void validate_directory_header(const DirectoryHeader& directory, const Header& header,
                               const ReadLimits& limits);

/// Region k's name, and its extent: aligned, large enough for its headers, after the header of the
/// file and before the directory.
void validate_region_index_entry(const RegionIndexEntry& entry, std::uint32_t k,
                                 const Header& header);

/// Region k's record: its run inside the tensor table, its name inside the names.
void validate_directory_region(const DirectoryRegion& region, std::uint32_t k,
                               const DirectoryHeader& directory, const Header& header);

/// The names of a connection's two regions. @param entry_offset of the entry in the file.
void validate_connection_entry(const ConnectionEntry& entry, std::uint64_t entry_offset);

/// The section offsets of a region's header and extension, inside the region's `length`.
void validate_region_header(const RegionHeader& region, const RegionExtension& extension,
                            std::uint64_t region_offset, std::uint64_t length,
                            const ReadLimits& limits);

/// Codes, shape, lengths, alignment, chunk run, and the payload inside `owner`, the extent of its
/// region or of the connectivity section. @param entry_offset of the entry in the file, for
/// messages.
/// @return the shape.
Shape validate_tensor_entry(const TensorEntry& entry, std::uint64_t entry_offset,
                            const DirectoryHeader& directory, Extent owner);

/// Chunk number `i` of `tensor`: it starts where the one before ended (`expected_offset`), and its
/// raw length is what is left (`raw_left`) or, but for the last chunk, that of the first chunk.
void validate_chunk_entry(const ChunkEntry& chunk, std::uint32_t i, const TensorEntry& tensor,
                          std::uint64_t expected_offset, std::uint64_t raw_left,
                          std::uint32_t first_raw_length, std::uint64_t entry_offset);

/// The side data of a tensor that needs a base, and what its entry has to say then. The entry is
/// one that validate_tensor_entry() accepted.
void validate_delta_tensor(const DeltaTensor& side, std::uint64_t side_offset,
                           const TensorEntry& entry, std::uint64_t entry_offset);

}  // namespace thalia::format
