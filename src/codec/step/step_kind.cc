#include "codec/step/step_kind.h"

#include "base/dtype_facts.h"

namespace thalia::codec {

std::optional<StepKind> step_kind(DType dtype) noexcept {
  const DTypeFacts& facts = dtype_facts(dtype);
  if (facts.bits != 8 && facts.bits != 16) return std::nullopt;
  const auto bytes = static_cast<std::uint8_t>(facts.bits / 8);
  switch (facts.kind) {
    case DTypeKind::signed_integer:
    case DTypeKind::unsigned_integer:
      return StepKind{.bytes = bytes};
    case DTypeKind::floating:
      if (facts.fields.mantissa_bits == 0) return StepKind{.bytes = bytes};
      return StepKind{
          .bytes = bytes,
          .is_float = true,
          .exponent_shift = facts.fields.mantissa_bits,
          .exponent_mask = static_cast<std::uint8_t>((1u << facts.fields.exponent_bits) - 1)};
    case DTypeKind::boolean:
    case DTypeKind::complex:
      break;
  }
  return std::nullopt;
}

}  // namespace thalia::codec
