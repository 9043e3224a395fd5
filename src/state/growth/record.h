// What growth and pruning leave in the growth history of a state's metadata.
#pragma once

#include <cstdint>
#include <string_view>

#include "thalia/state/growth.h"
#include "thalia/state/metadata.h"
#include "thalia/state/value.h"

namespace thalia::state {

/// Adds the event to the end of `growth_history`. @throws UsageError (wrong_state) if that is
/// there and neither an array nor null.
void append_event(Value& metadata, const GrowthEvent& event);

/// The event of grow_output(), or with a source, of grow_source().
GrowthEvent growth_event(std::uint64_t step, std::string_view region, std::string_view source,
                         const GrowthResult& result, std::string_view reason);

}  // namespace thalia::state
