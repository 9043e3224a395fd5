// The header of a file that is being written. docs/format/format.md, "Header".
#pragma once

#include <cstdint>
#include <optional>

#include "container/plan/file_plan.h"
#include "container/plan/layout.h"
#include "format/header.h"
#include "thalia/options.h"

namespace thalia::container {

/// What follows from a plan and its layout: magic, versions, flags, totals, and the places of
/// metadata and connectivity. generation is 1. The fields that the functions below fill in are
/// zero.
format::Header build_header(const FilePlan& plan, const Layout& layout);

/// Places the tables after `end`: directory, region index, commit record, integrity table, closing
/// checksum. @param block_log2 nullopt: by the file's size.
void place_tables(format::Header& header, std::uint64_t end, std::uint64_t directory_length,
                  ChecksumType checksum, LeafAlgorithm leaves, std::optional<unsigned> block_log2);

/// RFC 9562, variant 1: version 4, random; or version 8, from all that the header says.
void set_random_uuid(format::Header& header);
void set_derived_uuid(format::Header& header);

/// To be called last: any later change of the header needs a new CRC.
void set_header_crc(format::Header& header);

}  // namespace thalia::container
