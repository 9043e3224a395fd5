// Packing: multi-byte elements are little endian, types of less than a byte begin at its high end.
// The count of elements is in no file.
#include "formats/loom/native.h"

#include <algorithm>
#include <cstring>

namespace thalia {
namespace formats::loom {
namespace {

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

}  // namespace

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

}  // namespace formats::loom

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
