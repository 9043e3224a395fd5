// What a chunk's bytes are, as far as a filter or codec gains from knowing it. A hint: every byte
// comes back whatever the hint says.
#pragma once

#include <cstdint>

#include "thalia/dtype.h"

namespace thalia::codec {

enum class Content : std::uint8_t {
  bytes,     ///< nothing is known, or nothing that helps
  floats,    ///< IEEE-like: sign, exponent, mantissa from the highest bit down
  integers,  ///< two's complement or unsigned
  indices,   ///< unsigned and mostly ascending: the index arrays of csr and coo
};

/// Little-endian elements that follow each other from the chunk's first byte on; an incomplete one
/// may end it.
struct ElementLayout {
  Content content = Content::bytes;
  std::uint8_t element_bytes = 1;  ///< 1, 2, 4 or 8
  std::uint8_t exponent_bits = 0;  ///< of floats: 5 for f16, 8 for bf16 and f32, 11 for f64

  friend bool operator==(const ElementLayout&, const ElementLayout&) = default;
};

/// Of the elements of a dense tensor. A complex element is two floats; types of less than a byte,
/// and those whose elements straddle bytes, are bytes.
ElementLayout element_layout(DType dtype) noexcept;

}  // namespace thalia::codec
