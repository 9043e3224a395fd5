// Options of a save against their bounds.
#pragma once

#include "thalia/options.h"

namespace thalia::container {

/// @throws UsageError (bad_argument) naming the option, its value and its bounds.
void check_options(const SaveOptions& options);

}  // namespace thalia::container
