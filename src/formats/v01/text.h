// Texts of 0.1 files in UTF-8.
#pragma once

#include <cstdint>

#include "thalia/formats/v01.h"

namespace thalia::formats {

/// Puts U+FFFD in the place of each lone surrogate, in names and texts, also of the metadata. Names
/// of one object that become equal get a number. @return how many surrogates there were.
std::uint64_t replace_lone_surrogates(V01Document& document);

}  // namespace thalia::formats
