// Events of a growth history in words.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/terminal/output.h"
#include "thalia/growth_history.h"

namespace thalia::cli {

/// "+100 neurons", "-234 synapses", of several the sum of words; the type where nothing is counted.
std::string growth_change(const GrowthEvent& event);
/// "45,000"; the timestamp where there is no step, "-" where there is neither. Escaped.
std::string growth_time(const GrowthEvent& event);

/// A line an event, of many the last ones.
void print_growth_table(Output& out, std::span<const GrowthEvent> events, std::string_view margin);

}  // namespace thalia::cli
