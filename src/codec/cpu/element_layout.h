// What the bytes of a chunk are, as far as a filter or codec gains from knowing it. It is only a
// hint: a chunk decodes to the same bytes whatever the hint was.
#pragma once

#include <cstdint>

#include "thalia/types.h"

namespace thalia::codec {

enum class Content : std::uint8_t {
  bytes,     ///< nothing is known, or nothing that helps
  floats,    ///< IEEE-like: sign, exponent, mantissa from the highest bit down
  integers,  ///< two's complement or unsigned
  indices,   ///< unsigned and mostly ascending: the index arrays of csr and coo
};

/// Little-endian elements, one after the other from the chunk's first byte on. The last one may be
/// incomplete.
struct ElementLayout {
  Content content = Content::bytes;
  std::uint8_t element_bytes = 1;  ///< 1, 2, 4 or 8
  std::uint8_t exponent_bits = 0;  ///< of floats: 5 for f16, 8 for bf16 and f32, 11 for f64
  /// Exclusive or of two tensors' elements: mostly zeros, and noise between them.
  bool is_difference = false;

  friend bool operator==(const ElementLayout&, const ElementLayout&) = default;
};

/// The layout of a dense tensor's elements. A complex element counts as two floats. Types of less
/// than a byte, and types whose elements cross bytes, count as bytes.
ElementLayout element_layout(DType dtype) noexcept;

/// The layout of the exclusive or of elements of a layout.
constexpr ElementLayout of_difference(ElementLayout layout) noexcept {
  layout.is_difference = true;
  return layout;
}

}  // namespace thalia::codec
