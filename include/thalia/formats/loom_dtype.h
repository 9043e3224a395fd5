// The 21 element types of the original loom program, as its files pack them, and what it makes of
// f32 weights: Morph and Unpack.
//
//   const std::vector<float> master = {0.5f, -0.25f, 0.1f};
//   const thalia::LoomNative native = thalia::morph_loom_weights(thalia::LoomDType::int4, master);
//   const std::vector<float> back = thalia::unpack_loom_weights(
//       thalia::LoomDType::int4, native.packed, native.scale, master.size());
//
// Everything here is a function of its arguments; any number of threads. docs/format/loom.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "thalia/bytes.h"
#include "thalia/dtype.h"

namespace thalia {

/// Persistent: values are the original's.
enum class LoomDType : std::uint8_t {
  float64 = 0,
  float32 = 1,
  float16 = 2,
  bfloat16 = 3,
  fp8e4m3 = 4,
  fp8e5m2 = 5,
  int64 = 6,
  int32 = 7,
  int16 = 8,
  int8 = 9,
  uint64 = 10,
  uint32 = 11,
  uint16 = 12,
  uint8 = 13,
  int4 = 14,
  uint4 = 15,
  fp4 = 16,
  int2 = 17,
  uint2 = 18,
  ternary = 19,
  binary = 20,
};
inline constexpr std::uint8_t kLoomDTypeCount = 21;

/// The name in files, always lower case: "fp8e4m3". Static storage.
std::string_view loom_dtype_name(LoomDType dtype) noexcept;
/// By any of the original's names, in any case: "FP8", "i8". nullopt: it has no such name.
std::optional<LoomDType> loom_dtype_from_name(std::string_view name) noexcept;
/// The same as the original reads it: a name that it does not know is float32.
LoomDType parse_loom_dtype(std::string_view name) noexcept;

unsigned loom_dtype_bits(LoomDType dtype) noexcept;
/// Bytes of an element once it is decoded: 8, 4 or 2, and 1 for all types of up to 8 bits.
unsigned loom_element_bytes(LoomDType dtype) noexcept;
/// Bytes of `count` packed elements; nullopt where they pass 2^64 - 1.
std::optional<std::uint64_t> loom_packed_bytes(LoomDType dtype, std::uint64_t count) noexcept;
/// Elements in packed bytes. Types of less than a byte fill their last byte, whatever was packed;
/// of others a part of an element at the end does not count.
std::uint64_t loom_element_count(LoomDType dtype, std::uint64_t packed_bytes) noexcept;
/// The type of this library whose bytes and meaning are the same. nullopt for fp8, which has values
/// of its own, and for types of less than a byte, which begin at the other end of it.
std::optional<DType> loom_dtype_as_thalia(LoomDType dtype) noexcept;

/// What a file holds of elements. `elements`: little endian, loom_element_bytes() each; those of
/// less than a byte as int8 or uint8, binary as +1 and -1. 4 bits: the first element in the high
/// half of a byte; 2 bits and 1 bit: the first in the highest. What is unused at the end is 0; so
/// is a bit of binary for an element that is not positive.
std::vector<std::byte> encode_loom_weights(LoomDType dtype, ByteSpan elements);
/// The inverse: loom_element_count() elements. Encoding these again gives the same whole elements.
std::vector<std::byte> decode_loom_weights(LoomDType dtype, ByteSpan packed);

struct LoomNative {
  std::vector<std::byte> packed;
  float scale = 1;
};
/// Quantises as the original does ("Morph"). A scale of exactly 1 counts as none: it is computed
/// from the weights then. float32 takes the weights and the scale as they are. Casts of what does
/// not fit are those of amd64.
LoomNative morph_loom_weights(LoomDType dtype, std::span<const float> master, float scale = 1);
/// The scale that Morph computes.
float loom_auto_scale(LoomDType dtype, std::span<const float> master) noexcept;

/// The f32 weights that packed bytes stand for ("Unpack"): the first `count` of them. @throws
/// UsageError (size_mismatch) if there are less.
std::vector<float> unpack_loom_weights(LoomDType dtype, ByteSpan packed, float scale,
                                       std::uint64_t count);

/// Single elements. The encoders cut mantissas off, and have no subnormal numbers.
std::uint8_t loom_fp8e4m3_from_float(float value) noexcept;
std::uint8_t loom_fp8e5m2_from_float(float value) noexcept;
std::uint16_t loom_float16_from_float(float value) noexcept;
std::uint16_t loom_bfloat16_from_float(float value) noexcept;
std::uint8_t loom_fp4_from_float(float value) noexcept;
float loom_fp8e4m3_to_float(std::uint8_t code) noexcept;
float loom_fp8e5m2_to_float(std::uint8_t code) noexcept;
float loom_float16_to_float(std::uint16_t code) noexcept;
float loom_bfloat16_to_float(std::uint16_t code) noexcept;
/// Uses the low four bits.
float loom_fp4_to_float(std::uint8_t code) noexcept;

}  // namespace thalia
