// TOML as a tree of values. The only place that knows toml++.
#pragma once

#include <string_view>

#include "thalia/state/value.h"

namespace thalia::store {

/// Tables become objects; dates and times texts. @throws FormatError (bad_value) with the line.
Value parse_toml(std::string_view text);

}  // namespace thalia::store
