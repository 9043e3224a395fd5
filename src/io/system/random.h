// Random bytes from the operating system.
#pragma once

#include "thalia/types.h"

namespace thalia::io {

/// Fills `out`. @throws IoError.
void fill_random(MutableByteSpan out);

}  // namespace thalia::io
