// One event of a growth history from JSON, whichever of the three shapes it has.
#pragma once

#include "json/reader.h"
#include "thalia/state/metadata.h"

namespace thalia::state {

/// Takes the value. Accepts whatever is well formed.
GrowthEvent read_growth_event(json::Value& value);

}  // namespace thalia::state
