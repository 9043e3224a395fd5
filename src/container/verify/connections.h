// The connectivity section against the directory. docs/format/format.md, "Connectivity".
#pragma once

#include "container/file/open_file.h"
#include "container/verify/findings.h"

namespace thalia::container {

/// Checks the entries, their regions, the places and roles of their matrices, and that the section
/// holds nothing else. The region records of the directory have to be sound.
void verify_connections(const detail::OpenFile& file, Findings& findings);

}  // namespace thalia::container
