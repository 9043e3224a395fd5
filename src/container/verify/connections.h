// What the connectivity section says of its matrices against the directory.
#pragma once

#include "container/file/open_file.h"
#include "container/verify/findings.h"

namespace thalia::container {

/// Entries, their regions and matrices, roles, and that nothing stands in the section besides.
/// Region records of the directory are sound.
void verify_connections(const detail::OpenFile& file, Findings& findings);

}  // namespace thalia::container
