// The metadata of a 0.1 file and those of a brain's state. docs/format/v01.md, "States of version
// 0.1".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "thalia/formats/v01.h"
#include "thalia/state/brain.h"

namespace thalia::formats {

/// The note on how the metadata of a 0.1 file were written.
inline constexpr std::string_view kV01Note = "v0_1";

/// Whether a brain-wide component is in the metadata of a 0.1 file, if it has no tensors.
bool is_v01_metadata_component(std::string_view name) noexcept;

/// Fills metadata and state of a brain.
void take_v01_metadata(const V01Document& document, BrainState& brain);

/// The metadata of a document whose header and entries are there.
Value make_v01_metadata(const BrainState& brain, const V01Document& document);

/// The header's timestamp as the note has it.
std::optional<std::uint64_t> noted_v01_timestamp(const BrainState& brain) noexcept;

}  // namespace thalia::formats
