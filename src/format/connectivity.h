// The connectivity section: which region projects to which. docs/format/format.md, "Connectivity".
#pragma once

#include "format/little_endian.h"

namespace thalia::format {

struct ConnectivityHeader {
  le32 num_connections;
  le32 zero_04;
  std::uint8_t zero_08[24];
};

THALIA_ON_DISK(ConnectivityHeader, 32);
THALIA_FIELD(ConnectivityHeader, num_connections, 0x00, 4);
THALIA_FIELD(ConnectivityHeader, zero_04, 0x04, 4);
THALIA_FIELD(ConnectivityHeader, zero_08, 0x08, 24);

/// Offsets count from the first byte of the section and point at a matrix's 32-byte tensor header;
/// a length counts from there to the end of its payload. delay_offset 0 with delay_length 0: no
/// delays.
struct ConnectionEntry {
  std::uint8_t source_region[32];
  std::uint8_t target_region[32];
  le64 weight_offset;
  le64 weight_length;
  le64 delay_offset;
  le64 delay_length;
};

THALIA_ON_DISK(ConnectionEntry, 96);
THALIA_FIELD(ConnectionEntry, source_region, 0x00, 32);
THALIA_FIELD(ConnectionEntry, target_region, 0x20, 32);
THALIA_FIELD(ConnectionEntry, weight_offset, 0x40, 8);
THALIA_FIELD(ConnectionEntry, weight_length, 0x48, 8);
THALIA_FIELD(ConnectionEntry, delay_offset, 0x50, 8);
THALIA_FIELD(ConnectionEntry, delay_length, 0x58, 8);

}  // namespace thalia::format
