// The char[32] form of a region's name. docs/format/format.md, "Short names".
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace thalia::container {

using ShortName = std::array<std::uint8_t, 32>;

/// Up to 31 bytes as they are; of a longer name the first 22 (whole characters), '~', and 8 hex
/// digits of its SHA-256.
ShortName short_name(std::string_view full_name);

/// The same as text: what connections know a region by.
std::string short_name_string(std::string_view full_name);

}  // namespace thalia::container
