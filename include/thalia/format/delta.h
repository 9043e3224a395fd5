// The 64 bytes that open a delta file. docs/format.md, "Delta files".
#pragma once

#include "thalia/format/little_endian.h"

namespace thalia::format {

inline constexpr std::uint8_t kDeltaMagic[5] = {0xCE, 0x94, 0x54, 0x48, 0x4C};

struct DeltaHeader {
  std::uint8_t magic[5];
  le32 delta_version;
  std::uint8_t base_checkpoint_hash[32];
  le64 base_step;
  le64 current_step;
  std::uint8_t zero_39[7];
};

THALIA_ON_DISK(DeltaHeader, 64);
THALIA_FIELD(DeltaHeader, magic, 0x00, 5);
THALIA_FIELD(DeltaHeader, delta_version, 0x05, 4);
THALIA_FIELD(DeltaHeader, base_checkpoint_hash, 0x09, 32);
THALIA_FIELD(DeltaHeader, base_step, 0x29, 8);
THALIA_FIELD(DeltaHeader, current_step, 0x31, 8);
THALIA_FIELD(DeltaHeader, zero_39, 0x39, 7);

}  // namespace thalia::format
