// Events of a growth history in words.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/terminal/output.h"
#include "thalia/state/metadata.h"

namespace thalia::cli {

/// What an event changed: "+100 neurons", or "-234 synapses", or both in one list; the event's type
/// if it counts nothing.
std::string growth_change(const GrowthEvent& event);
/// "45,000"; the timestamp if there is no step, "-" if there is neither. Escaped.
std::string growth_time(const GrowthEvent& event);

/// One line for each event; of a long history only the last ones.
void print_growth_table(Output& out, std::span<const GrowthEvent> events, std::string_view margin);

}  // namespace thalia::cli
