// What opening a side file leaves unchecked.
#pragma once

#include "container/findings.h"
#include "container/open_file.h"

namespace thalia::container {

/// That it is of a source of the length that it says, and holds all that it has to.
void verify_side_file(const detail::OpenFile& file, Findings& findings);

}  // namespace thalia::container
