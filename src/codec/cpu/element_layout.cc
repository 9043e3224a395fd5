#include "codec/cpu/element_layout.h"

#include "base/dtype_facts.h"

namespace thalia::codec {

ElementLayout element_layout(DType dtype) noexcept {
  const DTypeFacts& facts = dtype_facts(dtype);
  // Smaller than a byte, or across bytes: no words that a filter could cut.
  if (dtype_is_packed(dtype)) return {};
  const auto bytes = static_cast<std::uint8_t>(facts.bits / 8);
  switch (facts.kind) {
    case DTypeKind::floating:
      // Scales are bytes that repeat, and gain from no filter; so are booleans.
      if (facts.fields.mantissa_bits == 0) return {};
      return {Content::floats, bytes, facts.fields.exponent_bits};
    case DTypeKind::complex:
      return {Content::floats, static_cast<std::uint8_t>(bytes / 2), facts.fields.exponent_bits};
    case DTypeKind::signed_integer:
    case DTypeKind::unsigned_integer:
      return {Content::integers, bytes};
    case DTypeKind::boolean:
      break;
  }
  return {};
}

}  // namespace thalia::codec
