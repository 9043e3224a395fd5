// f32 weights to native elements and back, with the original's arithmetic: scales and quotients in
// f32, rounding half away from zero, and casts that give for what does not fit what amd64 gives.
#include "formats/loom/morph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "base/fail.h"
#include "format/little_endian.h"
#include "thalia/formats/loom_network.h"

namespace thalia::formats::loom {
namespace {

// Packed elements, a piece at a time.
//
// Packing: multi-byte elements are little endian, types of less than a byte begin at its high end.
// The count of elements is in no file.

/// Elements that fill whole bytes of every type: pieces of this many can be packed one by one.
inline constexpr std::size_t kPieceElements = 4096;

/// @param packed loom_packed_bytes() of the elements.
void pack(LoomDType dtype, ByteSpan elements, MutableByteSpan packed) noexcept;

// A field of `bits` at the place that element i has in its byte.
constexpr unsigned field_shift(std::size_t i, unsigned bits) noexcept {
  const std::size_t in_a_byte = 8 / bits;
  return static_cast<unsigned>(8 - bits - (i % in_a_byte) * bits);
}

constexpr unsigned stored_field(LoomDType dtype, unsigned element, unsigned mask) noexcept {
  if (dtype != LoomDType::binary) return element & mask;
  return static_cast<std::int8_t>(element) > 0 ? 1 : 0;
}

// Sign extension is by value: ternary 10b is -2, which Morph never writes.
constexpr unsigned decoded_field(LoomDType dtype, unsigned field) noexcept {
  if (dtype == LoomDType::binary) return field != 0 ? 1 : 0xff;
  if (dtype == LoomDType::int4) return field > 7 ? field - 16 : field;
  if (dtype == LoomDType::int2 || dtype == LoomDType::ternary) return field > 1 ? field - 4 : field;
  return field;
}

void pack(LoomDType dtype, ByteSpan elements, MutableByteSpan packed) noexcept {
  const unsigned bits = loom_dtype_bits(dtype);
  if (packed.empty()) return;
  if (bits >= 8) {
    std::memcpy(packed.data(), elements.data(), packed.size());
    return;
  }
  std::fill(packed.begin(), packed.end(), std::byte{0});
  const unsigned mask = (1u << bits) - 1;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const unsigned field = stored_field(dtype, std::to_integer<unsigned>(elements[i]), mask);
    packed[i / (8 / bits)] |= static_cast<std::byte>(field << field_shift(i, bits));
  }
}

/// @param elements of loom_element_count(), or of fewer.
void unpack(LoomDType dtype, ByteSpan packed, MutableByteSpan elements) noexcept {
  const unsigned bits = loom_dtype_bits(dtype);
  if (elements.empty()) return;
  if (bits >= 8) {
    std::memcpy(elements.data(), packed.data(), elements.size());
    return;
  }
  const unsigned mask = (1u << bits) - 1;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const unsigned byte = std::to_integer<unsigned>(packed[i / (8 / bits)]);
    elements[i] =
        static_cast<std::byte>(decoded_field(dtype, (byte >> field_shift(i, bits)) & mask) & 0xff);
  }
}

}  // namespace
}  // namespace thalia::formats::loom

namespace thalia {

std::vector<std::byte> encode_loom_weights(LoomDType dtype, ByteSpan elements) {
  const std::uint64_t count = elements.size() / loom_element_bytes(dtype);
  // Packed, they are no more bytes than they are here.
  std::vector<std::byte> packed(loom_packed_bytes(dtype, count).value_or(0));
  formats::loom::pack(dtype, elements.first(count * loom_element_bytes(dtype)), packed);
  return packed;
}

std::vector<std::byte> decode_loom_weights(LoomDType dtype, ByteSpan packed) {
  std::vector<std::byte> elements(loom_element_count(dtype, packed.size()) *
                                  loom_element_bytes(dtype));
  formats::loom::unpack(dtype, packed, elements);
  return elements;
}

}  // namespace thalia

namespace thalia::formats::loom {
namespace {

template <typename Number>
Number load(ByteSpan bytes, std::size_t i) noexcept {
  using Bits = std::conditional_t<
      sizeof(Number) == 8, std::uint64_t,
      std::conditional_t<sizeof(Number) == 4, std::uint32_t,
                         std::conditional_t<sizeof(Number) == 2, std::uint16_t, std::uint8_t>>>;
  format::LittleEndian<Bits> stored;
  std::memcpy(&stored, bytes.data() + i * sizeof(Bits), sizeof(Bits));
  return std::bit_cast<Number>(static_cast<Bits>(stored));
}

template <typename Bits>
void store(MutableByteSpan bytes, std::size_t i, Bits value) noexcept {
  const format::LittleEndian<Bits> stored(value);
  std::memcpy(bytes.data() + i * sizeof(Bits), &stored, sizeof(Bits));
}

std::int64_t cast_int64(double value) noexcept {
  if (value >= -0x1p63 && value < 0x1p63) return static_cast<std::int64_t>(value);
  return std::numeric_limits<std::int64_t>::min();
}

std::int32_t cast_int32(double value) noexcept {
  if (value > -0x1p31 - 1 && value < 0x1p31) return static_cast<std::int32_t>(value);
  return std::numeric_limits<std::int32_t>::min();
}

// The upper half is cast as the lower, and moved; so is NaN.
std::uint64_t cast_uint64(double value) noexcept {
  if (value < 0x1p63) return static_cast<std::uint64_t>(cast_int64(value));
  return static_cast<std::uint64_t>(cast_int64(value - 0x1p63)) ^ (std::uint64_t{1} << 63);
}

std::uint8_t clamped(double value, std::int64_t least, std::int64_t most) noexcept {
  return static_cast<std::uint8_t>(std::clamp(cast_int64(value), least, most));
}

// `value` is a weight, `quotient` the weight over its scale; `out` gets element i.
void quantise(LoomDType dtype, float value, float quotient, float scale, MutableByteSpan out,
              std::size_t i) noexcept {
  const double level = std::round(static_cast<double>(quotient));
  switch (dtype) {
    case LoomDType::float64:
      return store(out, i, std::bit_cast<std::uint64_t>(static_cast<double>(value)));
    case LoomDType::float32:
      return store(out, i, std::bit_cast<std::uint32_t>(value));
    case LoomDType::float16:
      return store(out, i, loom_float16_from_float(value));
    case LoomDType::bfloat16:
      return store(out, i, loom_bfloat16_from_float(value));
    case LoomDType::fp8e4m3:
      return store(out, i, loom_fp8e4m3_from_float(quotient));
    case LoomDType::fp8e5m2:
      return store(out, i, loom_fp8e5m2_from_float(quotient));
    case LoomDType::int64:
      return store(out, i, static_cast<std::uint64_t>(cast_int64(level)));
    case LoomDType::int32:
      return store(out, i, static_cast<std::uint32_t>(cast_int32(level)));
    case LoomDType::int16:
      return store(out, i, static_cast<std::uint16_t>(cast_int32(level)));
    case LoomDType::int8:
      return store(out, i, static_cast<std::uint8_t>(cast_int64(level)));
    case LoomDType::uint64:
      return store(out, i, cast_uint64(std::abs(level)));
    case LoomDType::uint32:
      return store(out, i, static_cast<std::uint32_t>(cast_int64(std::abs(level))));
    case LoomDType::uint16:
      return store(out, i, static_cast<std::uint16_t>(cast_int32(std::abs(level))));
    case LoomDType::uint8:
      return store(out, i, clamped(level, 0, 255));
    case LoomDType::int4:
      return store(out, i, clamped(level, -8, 7));
    case LoomDType::uint4:
      return store(out, i, clamped(level, 0, 15));
    case LoomDType::fp4:
      return store(out, i, loom_fp4_from_float(scale == 0 ? value : quotient));
    case LoomDType::int2:
      return store(out, i, clamped(level, -2, 1));
    case LoomDType::uint2:
      return store(out, i, clamped(level, 0, 3));
    case LoomDType::ternary:
      return store(out, i, clamped(level, -1, 1));
    case LoomDType::binary:
      return store(out, i, static_cast<std::uint8_t>(quotient >= 0 ? 1 : -1));
  }
}

float restored(LoomDType dtype, ByteSpan elements, std::size_t i, float scale) noexcept {
  const float guarded = scale == 0 ? 1 : scale;
  switch (dtype) {
    case LoomDType::float64:
      return static_cast<float>(load<double>(elements, i));
    case LoomDType::float32:
      return load<float>(elements, i);
    case LoomDType::float16:
      return loom_float16_to_float(load<std::uint16_t>(elements, i));
    case LoomDType::bfloat16:
      return loom_bfloat16_to_float(load<std::uint16_t>(elements, i));
    case LoomDType::fp8e4m3:
      return loom_fp8e4m3_to_float(load<std::uint8_t>(elements, i)) * scale;
    case LoomDType::fp8e5m2:
      return loom_fp8e5m2_to_float(load<std::uint8_t>(elements, i)) * scale;
    case LoomDType::int64:
      return static_cast<float>(load<std::int64_t>(elements, i)) * scale;
    case LoomDType::int32:
      return static_cast<float>(load<std::int32_t>(elements, i)) * scale;
    case LoomDType::int16:
      return static_cast<float>(load<std::int16_t>(elements, i)) * scale;
    case LoomDType::uint64:
      return static_cast<float>(load<std::uint64_t>(elements, i)) * scale;
    case LoomDType::uint32:
      return static_cast<float>(load<std::uint32_t>(elements, i)) * scale;
    case LoomDType::uint16:
      return static_cast<float>(load<std::uint16_t>(elements, i)) * scale;
    case LoomDType::uint8:
    case LoomDType::uint4:
    case LoomDType::uint2:
      return static_cast<float>(load<std::uint8_t>(elements, i)) * scale;
    case LoomDType::fp4:
      return loom_fp4_to_float(load<std::uint8_t>(elements, i)) * guarded;
    case LoomDType::int8:
    case LoomDType::int4:
    case LoomDType::int2:
    case LoomDType::ternary:
    case LoomDType::binary:
      return static_cast<float>(load<std::int8_t>(elements, i)) * guarded;
  }
  return 0;
}

// What the greatest weight becomes.
float greatest_level(LoomDType dtype) noexcept {
  if (dtype == LoomDType::int4 || dtype == LoomDType::uint4) return 7;
  if (dtype == LoomDType::fp4) return 3;
  if (dtype == LoomDType::int2 || dtype == LoomDType::uint2 || dtype == LoomDType::ternary)
    return 1;
  return 127;
}

float auto_scale(LoomDType dtype, ByteSpan master) noexcept {
  const std::size_t count = master.size() / sizeof(float);
  if (dtype == LoomDType::binary) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i)
      sum += std::abs(static_cast<double>(load<float>(master, i)));
    const float mean = static_cast<float>(sum) / static_cast<float>(count);
    return mean == 0 ? 1 : mean;
  }
  float most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const float magnitude = std::abs(load<float>(master, i));
    if (magnitude > most) most = magnitude;
  }
  return most == 0 ? 1 : most / greatest_level(dtype);
}

}  // namespace

LoomNative morph(LoomDType dtype, ByteSpan master, float scale) {
  const std::size_t count = master.size() / sizeof(float);
  if (dtype != LoomDType::float32 && scale == 1 && count > 0) scale = auto_scale(dtype, master);
  LoomNative native{.packed = {}, .scale = scale};
  const unsigned width = loom_element_bytes(dtype);
  std::array<std::byte, kPieceElements * sizeof(std::uint64_t)> piece;
  native.packed.resize(loom_packed_bytes(dtype, count).value_or(0));
  MutableByteSpan rest(native.packed);
  for (std::size_t begin = 0; begin < count; begin += kPieceElements) {
    const std::size_t n = std::min(kPieceElements, count - begin);
    const MutableByteSpan elements = MutableByteSpan(piece).first(n * width);
    for (std::size_t i = 0; i < n; ++i) {
      const float value = load<float>(master, begin + i);
      quantise(dtype, value, value / scale, scale, elements, i);
    }
    const std::size_t bytes = loom_packed_bytes(dtype, n).value_or(0);
    pack(dtype, elements, rest.first(bytes));
    rest = rest.subspan(bytes);
  }
  return native;
}

void unpack_to(LoomDType dtype, ByteSpan packed, float scale, MutableByteSpan master) noexcept {
  const std::size_t count = master.size() / sizeof(float);
  const unsigned width = loom_element_bytes(dtype);
  std::array<std::byte, kPieceElements * sizeof(std::uint64_t)> piece;
  for (std::size_t begin = 0; begin < count; begin += kPieceElements) {
    const std::size_t n = std::min(kPieceElements, count - begin);
    const MutableByteSpan elements = MutableByteSpan(piece).first(n * width);
    const std::size_t at = loom_packed_bytes(dtype, begin).value_or(0);
    unpack(dtype, packed.subspan(at), elements);
    for (std::size_t i = 0; i < n; ++i)
      store(master, begin + i, std::bit_cast<std::uint32_t>(restored(dtype, elements, i, scale)));
  }
}

}  // namespace thalia::formats::loom

namespace thalia {

LoomNative morph_loom_weights(LoomDType dtype, std::span<const float> master, float scale) {
  return formats::loom::morph(dtype, std::as_bytes(master), scale);
}

float loom_auto_scale(LoomDType dtype, std::span<const float> master) noexcept {
  return master.empty() ? 1 : formats::loom::auto_scale(dtype, std::as_bytes(master));
}

std::vector<float> unpack_loom_weights(LoomDType dtype, ByteSpan packed, float scale,
                                       std::uint64_t count) {
  const std::uint64_t there = loom_element_count(dtype, packed.size());
  if (there < count) {
    fail_argument(ErrorCode::size_mismatch, "packed", fmt::format("{} elements", there),
                  std::to_string(count));
  }
  std::vector<float> master(count);
  formats::loom::unpack_to(dtype, packed, scale, std::as_writable_bytes(std::span(master)));
  return master;
}

}  // namespace thalia
