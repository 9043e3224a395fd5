// The heads of the streams that codecs of this format make of a chunk. docs/format.md,
// "packed_exponents".
#pragma once

#include "thalia/format/little_endian.h"

namespace thalia::format {

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
