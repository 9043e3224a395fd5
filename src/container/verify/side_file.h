// What opening a side file leaves unchecked.
#pragma once

#include "container/file/open_file.h"
#include "container/verify/findings.h"

namespace thalia::container {

/// That it is of a source of the length that it says, and holds all that it has to.
void verify_side_file(const detail::OpenFile& file, Findings& findings);

}  // namespace thalia::container
