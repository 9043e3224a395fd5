// Structures of the original program's files, version 0.1. docs/format/v01.md, "Version 0.1 files".
#pragma once

#include "format/little_endian.h"
#include "thalia/types.h"

namespace thalia::format {

/// Persistent: how a tensor's elements are stored.
enum class V01Encoding : std::uint32_t { dense = 0, sparse_coo = 1 };

/// Persistent: element types, by the names that the original program gives them.
enum class V01DType : std::uint32_t {
  float32 = 0,
  float64 = 1,
  int32 = 2,
  int64 = 3,
  boolean = 4,
  float16 = 5,
};

struct V01FileHeader {
  std::uint8_t magic[4];
  le16 major_version;
  le16 minor_version;
  le16 patch_version;
  le16 flags;
  le64 timestamp;
  le64 metadata_offset;
  le64 metadata_length;
  le64 region_index_offset;
  le64 region_index_length;
  le64 connectivity_offset;
  le64 connectivity_length;
  le64 total_neurons;
  le64 total_synapses;
  le64 training_steps;
  le32 num_regions;
  le32 checksum_type;
  std::uint8_t reserved[156];
};

THALIA_ON_DISK(V01FileHeader, 256);
THALIA_FIELD(V01FileHeader, magic, 0x00, 4);
THALIA_FIELD(V01FileHeader, major_version, 0x04, 2);
THALIA_FIELD(V01FileHeader, minor_version, 0x06, 2);
THALIA_FIELD(V01FileHeader, patch_version, 0x08, 2);
THALIA_FIELD(V01FileHeader, flags, 0x0A, 2);
THALIA_FIELD(V01FileHeader, timestamp, 0x0C, 8);
THALIA_FIELD(V01FileHeader, metadata_offset, 0x14, 8);
THALIA_FIELD(V01FileHeader, metadata_length, 0x1C, 8);
THALIA_FIELD(V01FileHeader, region_index_offset, 0x24, 8);
THALIA_FIELD(V01FileHeader, region_index_length, 0x2C, 8);
THALIA_FIELD(V01FileHeader, connectivity_offset, 0x34, 8);
THALIA_FIELD(V01FileHeader, connectivity_length, 0x3C, 8);
THALIA_FIELD(V01FileHeader, total_neurons, 0x44, 8);
THALIA_FIELD(V01FileHeader, total_synapses, 0x4C, 8);
THALIA_FIELD(V01FileHeader, training_steps, 0x54, 8);
THALIA_FIELD(V01FileHeader, num_regions, 0x5C, 4);
THALIA_FIELD(V01FileHeader, checksum_type, 0x60, 4);
THALIA_FIELD(V01FileHeader, reserved, 0x64, 156);

struct V01RegionEntry {
  std::uint8_t name[32];
  le64 data_offset;
  le64 data_length;
};

THALIA_ON_DISK(V01RegionEntry, 48);
THALIA_FIELD(V01RegionEntry, name, 0x00, 32);
THALIA_FIELD(V01RegionEntry, data_offset, 0x20, 8);
THALIA_FIELD(V01RegionEntry, data_length, 0x28, 8);

/// Before a tensor's dimensions, `ndim` of u32.
struct V01TensorHeader {
  LittleEndian<V01Encoding> encoding;
  LittleEndian<V01DType> dtype;
  le32 ndim;
};

THALIA_ON_DISK(V01TensorHeader, 12);
THALIA_FIELD(V01TensorHeader, encoding, 0x00, 4);
THALIA_FIELD(V01TensorHeader, dtype, 0x04, 4);
THALIA_FIELD(V01TensorHeader, ndim, 0x08, 4);

/// The header of deltas with the 4-byte magic, as the source specification places the fields.
struct V01EarlyDeltaHeader {
  std::uint8_t magic[4];
  le32 delta_version;
  Digest256 base_checkpoint_hash;
  le64 base_step;
  le64 current_step;
  std::uint8_t zero_38[8];
};

THALIA_ON_DISK(V01EarlyDeltaHeader, 64);
THALIA_FIELD(V01EarlyDeltaHeader, magic, 0x00, 4);
THALIA_FIELD(V01EarlyDeltaHeader, delta_version, 0x04, 4);
THALIA_FIELD(V01EarlyDeltaHeader, base_checkpoint_hash, 0x08, 32);
THALIA_FIELD(V01EarlyDeltaHeader, base_step, 0x28, 8);
THALIA_FIELD(V01EarlyDeltaHeader, current_step, 0x30, 8);
THALIA_FIELD(V01EarlyDeltaHeader, zero_38, 0x38, 8);

}  // namespace thalia::format
