// Names in fields of 32 bytes: the text, then NUL to the end. docs/format/format.md, "Short names".
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace thalia::format {

/// What is before the first NUL: of a field that is_fixed_name() holds for, all that it says.
inline std::string_view fixed_name(const std::uint8_t (&field)[32]) noexcept {
  const std::uint8_t* const end = std::find(std::begin(field), std::end(field), 0);
  return {reinterpret_cast<const char*>(field), static_cast<std::size_t>(end - field)};
}

/// The last byte is NUL, and so is each after the first NUL: two fields are then the same name
/// exactly if their bytes are.
inline bool is_fixed_name(const std::uint8_t (&field)[32]) noexcept {
  const std::uint8_t* const end = std::find(std::begin(field), std::end(field), 0);
  return end != std::end(field) &&
         std::all_of(end, std::end(field), [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace thalia::format
