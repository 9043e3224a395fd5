// What the directory says of a quantized tensor. docs/format/format.md, "quantized".
#pragma once

#include "format/little_endian.h"
#include "thalia/types.h"

namespace thalia::format {

/// TensorHeader::reserved before a quantized payload.
inline constexpr std::uint16_t kQuantizedMark = 2;
inline constexpr std::uint32_t kQuantizedTensorLength = 64;
/// Elements: the most that share parameters, but for all of a tensor's.
inline constexpr std::uint32_t kMaxQuantizedGroup = 65536;
/// Where nobody says otherwise. DynaQuant (arXiv:2306.11800) found ten restores to be bearable.
inline constexpr std::uint16_t kDefaultLossyGenerations = 10;

/// Side data of a quantized tensor: how its codes lie, and what comes out of them.
struct QuantizedSideData {
  std::uint8_t bits;
  std::uint8_t zero_01;
  le16 lossy_generation;
  le16 max_lossy_generations;
  le16 zero_06;
  le32 group_size;
  le32 crc32;
  le64 code_length;
  le64 max_error;
  le64 rms_error;
  Digest128 content_hash;
  std::uint8_t zero_38[8];
};

THALIA_ON_DISK(QuantizedSideData, 64);
THALIA_FIELD(QuantizedSideData, bits, 0x00, 1);
THALIA_FIELD(QuantizedSideData, zero_01, 0x01, 1);
THALIA_FIELD(QuantizedSideData, lossy_generation, 0x02, 2);
THALIA_FIELD(QuantizedSideData, max_lossy_generations, 0x04, 2);
THALIA_FIELD(QuantizedSideData, zero_06, 0x06, 2);
THALIA_FIELD(QuantizedSideData, group_size, 0x08, 4);
THALIA_FIELD(QuantizedSideData, crc32, 0x0C, 4);
THALIA_FIELD(QuantizedSideData, code_length, 0x10, 8);
THALIA_FIELD(QuantizedSideData, max_error, 0x18, 8);
THALIA_FIELD(QuantizedSideData, rms_error, 0x20, 8);
THALIA_FIELD(QuantizedSideData, content_hash, 0x28, 16);
THALIA_FIELD(QuantizedSideData, zero_38, 0x38, 8);

}  // namespace thalia::format
