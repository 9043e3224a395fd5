// Numbers of JSON texts, read the same in every locale.
#pragma once

#include <string_view>

namespace thalia::json {

/// The double nearest to a number that is_number() holds for, or Infinity or -Infinity; beyond the
/// range of a double an infinity or zero, as readers of doubles have it.
double to_double(std::string_view token) noexcept;

}  // namespace thalia::json
