// What the parts of a quantized tensor have to be.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "io/memory/allocation_limit.h"
#include "thalia/formats/mithril.h"

namespace thalia::formats::mithril_quantized {

/// As decode_mithril_quantized(), and as MithrilQuantized::dequantized(), out of the budget of one
/// call.
MithrilQuantized decode(ByteSpan file, const ReadLimits& limits, io::MemoryBudget& budget);
Tensor dequantize(const MithrilQuantized& tensor, io::MemoryBudget& budget);

/// What a quantized tensor is made of, without what is in it.
struct Outline {
  MithrilMethod method = MithrilMethod::int8_linear;
  DType original_dtype = DType::f32;
  std::optional<std::uint64_t> group_size{};
  TensorLayout codes{};
  std::uint64_t scales = 0;
  std::optional<std::uint64_t> zero_points{};
};
Outline outline_of(const MithrilQuantized& tensor);

/// What does not fit, and what would.
struct Misfit {
  std::string field;
  std::string value;
  std::string bound;
};
/// nullopt where everything fits together.
std::optional<Misfit> find_misfit(const Outline& outline);

/// The layout of the codes: i8 or u4 of the tensor's shape.
TensorLayout codes_layout(MithrilMethod method, const Shape& shape);
std::optional<MithrilMethod> method_from_name(std::string_view name) noexcept;

/// The original's number of a dtype; nullopt for one that it has not.
std::optional<std::uint32_t> dtype_variant(DType dtype) noexcept;
std::optional<DType> dtype_from_variant(std::uint32_t variant) noexcept;

}  // namespace thalia::formats::mithril_quantized
