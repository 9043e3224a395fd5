// Texts of 0.1 files in UTF-8.
#pragma once

#include <cstdint>

#include "thalia/v01.h"

namespace thalia::interop {

/// Puts U+FFFD in the place of each lone surrogate, in names and texts, metadata included. Names of
/// one object that become equal get a number behind. @return how many there were.
std::uint64_t replace_lone_surrogates(V01Document& document);

}  // namespace thalia::interop
