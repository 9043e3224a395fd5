// The heads of the streams that the codecs plane_entropy and packed_exponents make of a chunk.
// docs/format/format.md, "plane_entropy" and "packed_exponents".
#pragma once

#include "format/little_endian.h"

namespace thalia::format {

/// Persistent: values are part of the format.
enum class PlaneMode : std::uint8_t { stored = 0, constant = 1, coded = 2 };

struct PlaneEntropyHeader {
  std::uint8_t element_bytes;
  std::uint8_t is_rotated;
  le16 zero_2;
};

THALIA_ON_DISK(PlaneEntropyHeader, 4);
THALIA_FIELD(PlaneEntropyHeader, element_bytes, 0x00, 1);
THALIA_FIELD(PlaneEntropyHeader, is_rotated, 0x01, 1);
THALIA_FIELD(PlaneEntropyHeader, zero_2, 0x02, 2);

struct PlaneEntry {
  PlaneMode mode;
  std::uint8_t value;
  le16 zero_2;
  le32 length;
};

THALIA_ON_DISK(PlaneEntry, 8);
THALIA_FIELD(PlaneEntry, mode, 0x00, 1);
THALIA_FIELD(PlaneEntry, value, 0x01, 1);
THALIA_FIELD(PlaneEntry, zero_2, 0x02, 2);
THALIA_FIELD(PlaneEntry, length, 0x04, 4);

struct PackedExponentsHeader {
  std::uint8_t element_bytes;
  std::uint8_t symbol_bits;
  std::uint8_t code_bits;
  std::uint8_t zero_3;
  le32 escape_count;
};

THALIA_ON_DISK(PackedExponentsHeader, 8);
THALIA_FIELD(PackedExponentsHeader, element_bytes, 0x00, 1);
THALIA_FIELD(PackedExponentsHeader, symbol_bits, 0x01, 1);
THALIA_FIELD(PackedExponentsHeader, code_bits, 0x02, 1);
THALIA_FIELD(PackedExponentsHeader, zero_3, 0x03, 1);
THALIA_FIELD(PackedExponentsHeader, escape_count, 0x04, 4);

}  // namespace thalia::format
