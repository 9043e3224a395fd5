// The machine and the build that figures belong to.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "settings.h"

namespace thalia::bench {

using Facts = std::vector<std::pair<std::string, std::string>>;

/// Processor, kernel, memory, file systems, load, compiler and kind of build.
Facts environment(const Settings& settings);

/// Why figures of this build mean nothing (assertions, no optimisation, a sanitizer); empty if
/// they do.
std::string build_warning();

}  // namespace thalia::bench
