// The header of a safetensors file, as the reference writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "thalia/formats/safetensors.h"

namespace thalia::formats {

struct SafetensorsHeader {
  std::string bytes;               ///< what comes before the payloads, the length included
  std::vector<std::size_t> order;  ///< of the payloads, as positions in the tensors given
  std::uint64_t data_bytes = 0;    ///< of all payloads
};

/// The `bytes` of the tensors are not looked at. Where `align` is 8, the header is the reference's;
/// else it ends in more spaces. @throws UsageError, UnsupportedError as save_safetensors().
SafetensorsHeader make_safetensors_header(const std::vector<NamedArray>& tensors,
                                          const std::optional<SafetensorsMetadata>& metadata,
                                          std::uint64_t max_header_bytes, std::uint64_t align = 8);

/// @throws UsageError (duplicate).
void check_safetensors_names(const std::vector<NamedArray>& tensors);

/// Payloads begin at a multiple of this at most: two huge pages.
inline constexpr std::uint64_t kMostHeaderAlignment = 4 << 20;
/// @throws UsageError (bad_argument) unless payloads can begin at multiples of `align`.
void check_header_alignment(std::uint64_t align);

/// Puts the length before a header's text, which begins at kSafetensorsPrefix.
/// @throws UnsupportedError if it is longer than readers take.
void finish_header(std::string& bytes, std::uint64_t max_header_bytes);

}  // namespace thalia::formats
