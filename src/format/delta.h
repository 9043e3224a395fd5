// What comes before a delta's container, and what its directory says of a tensor that needs
// the base. docs/format/deltas.md, "Delta files".
#pragma once

#include "format/little_endian.h"
#include "format/tensor.h"
#include "thalia/types.h"

namespace thalia::format {

inline constexpr std::uint8_t kDeltaMagic[5] = {0xCE, 0x94, 0x54, 0x48, 0x4C};
inline constexpr std::uint32_t kDeltaVersion = 2;
inline constexpr std::uint32_t kDeltaReferenceLength = 64;
inline constexpr std::uint32_t kDeltaTensorLength = 64;
inline constexpr std::uint64_t kDeltaBlockElements = 65536;
inline constexpr std::uint32_t kStepDeltaHeaderLength = 4;
/// A bit of DeltaTensor::flags, beside kTensorWideIndices: crc32 and base_content_hash are not
/// stated, and zero.
inline constexpr std::uint8_t kDeltaBrief = 1 << 1;

struct DeltaHeader {
  std::uint8_t magic[5];
  le32 delta_version;
  Digest256 base_checkpoint_hash;
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

/// Directly after the header; the base's path follows.
struct DeltaReference {
  le32 reference_length;
  le32 crc32;
  le64 container_offset;
  le64 base_length;
  le64 base_generation;
  Uuid base_uuid;
  le32 depth;
  le32 path_length;
  std::uint8_t zero_38[8];
};

THALIA_ON_DISK(DeltaReference, 64);
THALIA_FIELD(DeltaReference, reference_length, 0x00, 4);
THALIA_FIELD(DeltaReference, crc32, 0x04, 4);
THALIA_FIELD(DeltaReference, container_offset, 0x08, 8);
THALIA_FIELD(DeltaReference, base_length, 0x10, 8);
THALIA_FIELD(DeltaReference, base_generation, 0x18, 8);
THALIA_FIELD(DeltaReference, base_uuid, 0x20, 16);
THALIA_FIELD(DeltaReference, depth, 0x30, 4);
THALIA_FIELD(DeltaReference, path_length, 0x34, 4);
THALIA_FIELD(DeltaReference, zero_38, 0x38, 8);

/// Side data of a tensor whose encoding is same_as_base, xor_base, sparse_delta, low_rank_delta or
/// step_delta. It describes the tensor that comes out, where the entry in the directory describes
/// what is stored.
struct DeltaTensor {
  Encoding encoding;
  std::uint8_t flags;
  std::uint8_t zero_02[2];
  le32 crc32;
  le64 logical_length;
  le64 nnz;
  Digest128 content_hash;
  Digest128 base_content_hash;
  std::uint8_t zero_38[8];
};

THALIA_ON_DISK(DeltaTensor, 64);
THALIA_FIELD(DeltaTensor, encoding, 0x00, 1);
THALIA_FIELD(DeltaTensor, flags, 0x01, 1);
THALIA_FIELD(DeltaTensor, zero_02, 0x02, 2);
THALIA_FIELD(DeltaTensor, crc32, 0x04, 4);
THALIA_FIELD(DeltaTensor, logical_length, 0x08, 8);
THALIA_FIELD(DeltaTensor, nnz, 0x10, 8);
THALIA_FIELD(DeltaTensor, content_hash, 0x18, 16);
THALIA_FIELD(DeltaTensor, base_content_hash, 0x28, 16);
THALIA_FIELD(DeltaTensor, zero_38, 0x38, 8);

/// The first bytes of a step_delta.
struct StepDeltaHeader {
  std::uint8_t table;
  std::uint8_t first_class;
  std::uint8_t lanes_log2;
  std::uint8_t chunk_log2;
};

THALIA_ON_DISK(StepDeltaHeader, 4);
THALIA_FIELD(StepDeltaHeader, table, 0x00, 1);
THALIA_FIELD(StepDeltaHeader, first_class, 0x01, 1);
THALIA_FIELD(StepDeltaHeader, lanes_log2, 0x02, 1);
THALIA_FIELD(StepDeltaHeader, chunk_log2, 0x03, 1);

/// States neither CRC-32 nor the base's content hash.
inline void make_brief(DeltaTensor& side) noexcept {
  side.flags |= kDeltaBrief;
  side.crc32 = 0;
  side.base_content_hash = {};
}

}  // namespace thalia::format
