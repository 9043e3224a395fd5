#include "formats/mithril_quantized/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "thalia/tensor.h"

namespace thalia {

std::string_view mithril_method_name(MithrilMethod method) noexcept {
  switch (method) {
    case MithrilMethod::int8_linear:
      return "int8_linear";
    case MithrilMethod::nf4:
      return "nf4";
    case MithrilMethod::int4:
      return "int4";
    case MithrilMethod::dynamic_int8:
      return "dynamic_int8";
  }
  return "unknown";
}

namespace formats::mithril_quantized {
namespace {

// In the order of the original's enumeration.
constexpr std::array kVariants{DType::f32, DType::f16, DType::bf16, DType::f64,    DType::i32,
                               DType::i64, DType::i8,  DType::u8,   DType::boolean};

std::string one_or_none(std::uint64_t elements) {
  return elements == 0 ? "at most 1" : "1";
}

std::string described(const TensorLayout& layout) {
  return fmt::format("{} {} {}", encoding_name(layout.encoding), dtype_name(layout.dtype),
                     layout.shape.to_string());
}

bool is_one(std::uint64_t count, std::uint64_t elements) {
  return count == 1 || (elements == 0 && count == 0);
}

}  // namespace

TensorLayout codes_layout(MithrilMethod method, const Shape& shape) {
  const bool narrow = method == MithrilMethod::nf4 || method == MithrilMethod::int4;
  return {.dtype = narrow ? DType::u4 : DType::i8, .shape = shape};
}

std::optional<MithrilMethod> method_from_name(std::string_view name) noexcept {
  for (const auto method : {MithrilMethod::int8_linear, MithrilMethod::nf4, MithrilMethod::int4,
                            MithrilMethod::dynamic_int8}) {
    if (mithril_method_name(method) == name) return method;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> dtype_variant(DType dtype) noexcept {
  const auto found = std::ranges::find(kVariants, dtype);
  if (found == kVariants.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - kVariants.begin());
}

std::optional<DType> dtype_from_variant(std::uint32_t variant) noexcept {
  return variant < kVariants.size() ? std::optional(kVariants[variant]) : std::nullopt;
}

Outline outline_of(const MithrilQuantized& tensor) {
  Outline outline{.method = tensor.method,
                  .original_dtype = tensor.original_dtype,
                  .group_size = tensor.group_size,
                  .codes = tensor.codes.layout(),
                  .scales = tensor.scales.size()};
  if (tensor.zero_points) outline.zero_points = tensor.zero_points->size();
  // If the shape is not its codes' own, the type is one that find_misfit() refuses.
  if (outline.codes.shape != tensor.shape) outline.codes.dtype = DType::f32;
  return outline;
}

std::optional<Misfit> find_misfit(const Outline& outline) {
  const Shape& shape = outline.codes.shape;
  const auto elements = shape.element_count();
  if (!elements) return Misfit{"shape", shape.to_string(), "fewer than 2^64 elements"};
  if (!dtype_variant(outline.original_dtype)) {
    return Misfit{"original_dtype", std::string(dtype_name(outline.original_dtype)),
                  "a dtype of the original"};
  }
  const TensorLayout layout = codes_layout(outline.method, shape);
  if (outline.codes != layout) return Misfit{"codes", described(outline.codes), described(layout)};
  if (outline.method == MithrilMethod::nf4) {
    const std::uint64_t size = outline.group_size.value_or(0);
    if (size == 0) return Misfit{"group_size", "0 or none", "1 or more"};
    const std::uint64_t groups = *elements / size + (*elements % size != 0 ? 1 : 0);
    if (outline.scales != groups && !(*elements == 0 && outline.scales <= 1)) {
      return Misfit{"scales", std::to_string(outline.scales),
                    fmt::format("{}, one a group", groups)};
    }
  } else if (!is_one(outline.scales, *elements)) {
    return Misfit{"scales", std::to_string(outline.scales), one_or_none(*elements)};
  }
  if (outline.zero_points && !is_one(*outline.zero_points, *elements)) {
    return Misfit{"zero_points", std::to_string(*outline.zero_points), one_or_none(*elements)};
  }
  if (outline.method == MithrilMethod::int4 && !outline.zero_points && *elements != 0)
    return Misfit{"zero_points", "none", "1"};
  return std::nullopt;
}

}  // namespace formats::mithril_quantized
}  // namespace thalia
