// What a side file has to hold of its source. docs/format/format.md, "Side files".
#pragma once

#include <vector>

#include "container/file/open_file.h"
#include "format/extent.h"

namespace thalia::container {

/// The header, the texts, and all tables, in file order; no payloads, and no headers before
/// them. @throws FormatError; UnsupportedError for a side file that lacks a table.
std::vector<format::Extent> meta_extents(const detail::OpenFile& file);

}  // namespace thalia::container
