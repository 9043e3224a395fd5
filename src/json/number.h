// Numbers of JSON texts, read the same in every locale.
#pragma once

#include <string_view>

namespace thalia::json {

/// The double nearest to a number for which is_number() holds, or to Infinity or -Infinity. Beyond
/// the range of a double it is an infinity or zero, as readers of doubles have it.
double to_double(std::string_view token) noexcept;

}  // namespace thalia::json
