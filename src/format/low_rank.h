// What comes before the arrays of a low_rank_delta. docs/format/deltas.md, "low_rank_delta".
#pragma once

#include "format/little_endian.h"

namespace thalia::format {

inline constexpr std::uint32_t kLowRankHeaderLength = 64;
/// Bytes of a component's four parameters.
inline constexpr std::uint32_t kLowRankParameterLength = 32;

/// The first bytes of the logical bytes.
struct LowRankHeader {
  le32 rank;
  le16 lossy_generation;
  le16 max_lossy_generations;
  le64 code_length;
  le64 max_error;
  le64 rms_error;
  le64 relative_error;
  std::uint8_t zero_28[24];
};

THALIA_ON_DISK(LowRankHeader, 64);
THALIA_FIELD(LowRankHeader, rank, 0x00, 4);
THALIA_FIELD(LowRankHeader, lossy_generation, 0x04, 2);
THALIA_FIELD(LowRankHeader, max_lossy_generations, 0x06, 2);
THALIA_FIELD(LowRankHeader, code_length, 0x08, 8);
THALIA_FIELD(LowRankHeader, max_error, 0x10, 8);
THALIA_FIELD(LowRankHeader, rms_error, 0x18, 8);
THALIA_FIELD(LowRankHeader, relative_error, 0x20, 8);
THALIA_FIELD(LowRankHeader, zero_28, 0x28, 24);

}  // namespace thalia::format
