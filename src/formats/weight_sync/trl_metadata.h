// What the header of one of TRL's weight patches says, and the names of files. docs/format/trl.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/weight_sync/element_change.h"
#include "thalia/formats/safetensors.h"

namespace thalia::formats::weight_sync {

inline constexpr std::string_view kTrlAnchors = "anchors";
inline constexpr std::string_view kTrlDeltas = "deltas";

struct TrlMetadata {
  std::uint64_t version = 0;
  PositionEncoding encoding = PositionEncoding::gap_delta;
  std::string_view positions = ".idx";  ///< with which the names of such tensors end
  std::string_view values = ".val";
};

struct TrlCounts {
  std::uint64_t changed_tensors = 0;
  std::uint64_t changed_elements = 0;
  std::uint64_t elements = 0;
};

/// @throws FormatError for what is no delta; UnsupportedError for its positions.
TrlMetadata parse_trl_metadata(const SafetensorsMetadata& texts);
SafetensorsMetadata write_trl_metadata(const TrlMetadata& metadata, const TrlCounts& counts);

/// @throws UsageError (bad_argument) for another name; empty: the first one.
PositionEncoding position_encoding(std::string_view name);
/// N of step_N.safetensors.
std::optional<std::uint64_t> trl_step(std::string_view name) noexcept;

}  // namespace thalia::formats::weight_sync
