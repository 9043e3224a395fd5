// The headers of other writers: what is remembered of one so that it can be written again, and when
// what was remembered may be used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/safetensors/header.h"
#include "formats/safetensors/parse.h"

namespace thalia::formats::safetensors {

/// Beside the metadata and the tensors themselves. Empty for a header as the reference writes it.
struct KeptHeader {
  std::optional<std::string> text{};      ///< all of it
  std::optional<std::uint64_t> length{};  ///< of the text, where only spaces at its end differ

  bool empty() const noexcept { return !text && !length; }
  friend bool operator==(const KeptHeader&, const KeptHeader&) = default;
};

KeptHeader header_to_keep(const ParsedSafetensors& parsed);

/// The kept header, and the order of the payloads that it asks for. nullopt unless it is there and
/// describes exactly these tensors and this metadata: what was kept may have been edited since, or
/// the tensors have.
std::optional<SafetensorsHeader> restore_header(const KeptHeader& kept,
                                                const std::vector<NamedArray>& tensors,
                                                const std::optional<SafetensorsMetadata>& metadata,
                                                std::uint64_t max_header_bytes,
                                                const ReadLimits& limits);

/// restore_header(), or else the header that the reference would write. @throws as
/// make_safetensors_header().
SafetensorsHeader kept_or_new_header(const KeptHeader& kept, const std::vector<NamedArray>& tensors,
                                     const std::optional<SafetensorsMetadata>& metadata,
                                     std::uint64_t max_header_bytes, const ReadLimits& limits,
                                     std::uint64_t align = 8);

}  // namespace thalia::formats::safetensors
