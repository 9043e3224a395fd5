#pragma once

#include <string_view>

namespace thalia::container {

/// What the name of a file of SHA-256 ends with, after the whole name of the file that it is of.
inline constexpr std::string_view kSha256Ending = ".sha256";

}  // namespace thalia::container
