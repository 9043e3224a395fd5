// The 32-byte headers before payloads and the directory's tensor entry. docs/format/format.md,
// "Payload headers" and "Directory".
#pragma once

#include "format/little_endian.h"
#include "thalia/types.h"

namespace thalia::format {

/// Before a dense payload, and (reserved = kCooMark) of a coordinate list.
struct TensorHeader {
  DType dtype;
  std::uint8_t ndim;
  le16 reserved;
  le64 shape[3];
  le32 checksum;
};

inline constexpr std::uint16_t kCooMark = 1;

THALIA_ON_DISK(TensorHeader, 32);
THALIA_FIELD(TensorHeader, dtype, 0x00, 1);
THALIA_FIELD(TensorHeader, ndim, 0x01, 1);
THALIA_FIELD(TensorHeader, reserved, 0x02, 2);
THALIA_FIELD(TensorHeader, shape, 0x04, 24);
THALIA_FIELD(TensorHeader, checksum, 0x1C, 4);

/// Before a CSR payload.
struct CsrHeader {
  DType dtype;
  std::uint8_t reserved[3];
  le64 n_rows;
  le64 n_cols;
  le64 nnz;
  le32 checksum;
};

THALIA_ON_DISK(CsrHeader, 32);
THALIA_FIELD(CsrHeader, dtype, 0x00, 1);
THALIA_FIELD(CsrHeader, reserved, 0x01, 3);
THALIA_FIELD(CsrHeader, n_rows, 0x04, 8);
THALIA_FIELD(CsrHeader, n_cols, 0x0C, 8);
THALIA_FIELD(CsrHeader, nnz, 0x14, 8);
THALIA_FIELD(CsrHeader, checksum, 0x1C, 4);

/// Bits of TensorEntry::flags. wide_indices: the index arrays of csr and coo are u64, not u32.
inline constexpr std::uint16_t kTensorWideIndices = 1 << 0;
inline constexpr std::uint16_t kKnownTensorFlags = kTensorWideIndices;

struct TensorEntry {
  le32 name_offset;
  le16 name_length;
  Role role;
  Encoding encoding;
  DType dtype;
  std::uint8_t ndim;
  le16 flags;
  le32 crc32;
  le64 logical_length;
  le64 stored_offset;
  le64 stored_length;
  le32 first_chunk;
  le32 chunk_count;
  le64 nnz;
  Digest128 content_hash;
  le64 side_data_offset;
  le32 side_data_length;
  le32 zero_54;
  le64 shape[8];
  std::uint8_t zero_98[8];
};

THALIA_ON_DISK(TensorEntry, 160);
THALIA_FIELD(TensorEntry, name_offset, 0x00, 4);
THALIA_FIELD(TensorEntry, name_length, 0x04, 2);
THALIA_FIELD(TensorEntry, role, 0x06, 1);
THALIA_FIELD(TensorEntry, encoding, 0x07, 1);
THALIA_FIELD(TensorEntry, dtype, 0x08, 1);
THALIA_FIELD(TensorEntry, ndim, 0x09, 1);
THALIA_FIELD(TensorEntry, flags, 0x0A, 2);
THALIA_FIELD(TensorEntry, crc32, 0x0C, 4);
THALIA_FIELD(TensorEntry, logical_length, 0x10, 8);
THALIA_FIELD(TensorEntry, stored_offset, 0x18, 8);
THALIA_FIELD(TensorEntry, stored_length, 0x20, 8);
THALIA_FIELD(TensorEntry, first_chunk, 0x28, 4);
THALIA_FIELD(TensorEntry, chunk_count, 0x2C, 4);
THALIA_FIELD(TensorEntry, nnz, 0x30, 8);
THALIA_FIELD(TensorEntry, content_hash, 0x38, 16);
THALIA_FIELD(TensorEntry, side_data_offset, 0x48, 8);
THALIA_FIELD(TensorEntry, side_data_length, 0x50, 4);
THALIA_FIELD(TensorEntry, zero_54, 0x54, 4);
THALIA_FIELD(TensorEntry, shape, 0x58, 64);
THALIA_FIELD(TensorEntry, zero_98, 0x98, 8);

}  // namespace thalia::format
