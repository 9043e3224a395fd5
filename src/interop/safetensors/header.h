// The header of a safetensors file, as the reference writes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "thalia/safetensors.h"

namespace thalia::interop {

struct SafetensorsHeader {
  std::string bytes;               ///< what stands in front of the payloads, the length included
  std::vector<std::size_t> order;  ///< of the payloads, as positions in the tensors given
  std::uint64_t data_bytes = 0;    ///< of all payloads
};

/// The `bytes` of the tensors are not looked at. @throws UsageError, UnsupportedError as
/// save_safetensors().
SafetensorsHeader make_safetensors_header(const std::vector<SafetensorsTensor>& tensors,
                                          const std::optional<SafetensorsMetadata>& metadata,
                                          std::uint64_t max_header_bytes);

}  // namespace thalia::interop
