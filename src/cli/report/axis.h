// Round numbers along an axis, and names that fit beside one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace thalia::cli {

/// 1, 2 or 5 times a power of ten, at least `least`, so that about six of them make up `range`.
double tick_distance(double range, double least = 0);
/// The same of bytes: a round number of B, KiB, MiB and so on.
double byte_tick_distance(double range);

/// "12,000"; beyond what digits can tell "1e+20".
std::string whole_number(double value);
/// "0.1 %", "12 %", "340 %", of a share or a relative change; "0" of zero.
std::string percent_text(double share);

/// At most `most` characters, the middle left out, if there are parts, between two of them:
/// "transformer.h.11.a…c_proj.weight". No number is cut in its middle, as far as there is room.
std::string short_name(std::string_view name, std::size_t most);

}  // namespace thalia::cli
