// Save options against their limits.
#pragma once

#include <cstdint>

#include "thalia/options.h"

namespace thalia::container {

void check_options(const SaveOptions& options);

}  // namespace thalia::container
