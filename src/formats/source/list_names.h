// Names in a sentence.
#pragma once

#include <string>
#include <vector>

namespace thalia::formats {

/// "'a', 'b', 'c' and 4 more", for sentences about what is lost.
std::string list_names(const std::vector<std::string>& names);

}  // namespace thalia::formats
