// Options against their bounds.
#pragma once

#include <cstdint>

#include "thalia/options.h"

namespace thalia::container {

/// @throws UsageError (bad_argument) naming the option, its value and its bounds.
void check_option(const char* name, std::uint64_t value, std::uint64_t low, std::uint64_t high);
void check_options(const SaveOptions& options);

}  // namespace thalia::container
