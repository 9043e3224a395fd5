// When a file was saved, as it says itself.
#pragma once

#include <cstdint>

#include "thalia/options.h"

namespace thalia::io {

/// Seconds since 1970: now; of a reproducible file SOURCE_DATE_EPOCH, or 0 if that is not set.
/// @throws UsageError (bad_argument) if SOURCE_DATE_EPOCH is no number of seconds.
std::uint64_t save_time(const OutputOptions& output);

}  // namespace thalia::io
