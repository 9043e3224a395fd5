// What opening a side file leaves unchecked.
#pragma once

#include "container/file/open_file.h"
#include "container/verify/findings.h"

namespace thalia::container {

/// Checks that the source is as long as the side file says, and that the extents hold all that they
/// have to.
void verify_side_file(const detail::OpenFile& file, Findings& findings);

}  // namespace thalia::container
