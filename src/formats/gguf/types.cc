// The table of ggml's element types: numbers and sizes as in ggml's C code. The Python package
// differs in one: it gives blocks of Q8_1 40 bytes. Neither writes that type into files.
#include <algorithm>

#include "thalia/formats/gguf.h"

namespace thalia {
namespace {

constexpr GgmlTypeFacts kGgmlTypes[] = {
    {GgmlType::f32, "F32", 1, 4, DType::f32, false},
    {GgmlType::f16, "F16", 1, 2, DType::f16, false},
    {GgmlType::q4_0, "Q4_0", 32, 18, {}, true},
    {GgmlType::q4_1, "Q4_1", 32, 20, {}, true},
    {GgmlType::q5_0, "Q5_0", 32, 22, {}, true},
    {GgmlType::q5_1, "Q5_1", 32, 24, {}, true},
    {GgmlType::q8_0, "Q8_0", 32, 34, {}, true},
    {GgmlType::q8_1, "Q8_1", 32, 36, {}, false},
    {GgmlType::q2_k, "Q2_K", 256, 84, {}, true},
    {GgmlType::q3_k, "Q3_K", 256, 110, {}, true},
    {GgmlType::q4_k, "Q4_K", 256, 144, {}, true},
    {GgmlType::q5_k, "Q5_K", 256, 176, {}, true},
    {GgmlType::q6_k, "Q6_K", 256, 210, {}, true},
    {GgmlType::q8_k, "Q8_K", 256, 292, {}, true},
    {GgmlType::iq2_xxs, "IQ2_XXS", 256, 66, {}, false},
    {GgmlType::iq2_xs, "IQ2_XS", 256, 74, {}, false},
    {GgmlType::iq3_xxs, "IQ3_XXS", 256, 98, {}, false},
    {GgmlType::iq1_s, "IQ1_S", 256, 50, {}, false},
    {GgmlType::iq4_nl, "IQ4_NL", 32, 18, {}, true},
    {GgmlType::iq3_s, "IQ3_S", 256, 110, {}, false},
    {GgmlType::iq2_s, "IQ2_S", 256, 82, {}, false},
    {GgmlType::iq4_xs, "IQ4_XS", 256, 136, {}, true},
    {GgmlType::i8, "I8", 1, 1, DType::i8, false},
    {GgmlType::i16, "I16", 1, 2, DType::i16, false},
    {GgmlType::i32, "I32", 1, 4, DType::i32, false},
    {GgmlType::i64, "I64", 1, 8, DType::i64, false},
    {GgmlType::f64, "F64", 1, 8, DType::f64, false},
    {GgmlType::iq1_m, "IQ1_M", 256, 56, {}, false},
    {GgmlType::bf16, "BF16", 1, 2, DType::bf16, false},
    {GgmlType::tq1_0, "TQ1_0", 256, 54, {}, true},
    {GgmlType::tq2_0, "TQ2_0", 256, 66, {}, true},
    {GgmlType::mxfp4, "MXFP4", 32, 17, {}, true},
    {GgmlType::nvfp4, "NVFP4", 64, 36, {}, true},
    {GgmlType::q1_0, "Q1_0", 128, 18, {}, true},
    {GgmlType::q2_0, "Q2_0", 64, 18, {}, false},
};

const GgmlTypeFacts* ggml_type_or_null(const GgmlTypeFacts* found) noexcept {
  return found == std::end(kGgmlTypes) ? nullptr : found;
}

}  // namespace

std::span<const GgmlTypeFacts> ggml_types() noexcept {
  return kGgmlTypes;
}

const GgmlTypeFacts* ggml_type_facts(GgmlType type) noexcept {
  return ggml_type_or_null(std::ranges::find(kGgmlTypes, type, &GgmlTypeFacts::type));
}

const GgmlTypeFacts* ggml_type_from_name(std::string_view name) noexcept {
  return ggml_type_or_null(std::ranges::find(kGgmlTypes, name, &GgmlTypeFacts::name));
}

std::optional<GgmlType> ggml_type_of(DType dtype) noexcept {
  const GgmlTypeFacts* const found =
      ggml_type_or_null(std::ranges::find(kGgmlTypes, std::optional(dtype), &GgmlTypeFacts::dtype));
  return found == nullptr ? std::nullopt : std::optional(found->type);
}

std::optional<std::uint64_t> ggml_bytes(GgmlType type, const Shape& shape) noexcept {
  const GgmlTypeFacts* const facts = ggml_type_facts(type);
  if (facts == nullptr) return std::nullopt;
  const std::uint64_t row = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  if (row % facts->block_elements != 0) return std::nullopt;
  const std::optional<std::uint64_t> elements = shape.element_count();
  std::uint64_t bytes = 0;
  if (!elements || __builtin_mul_overflow(*elements / facts->block_elements,
                                          std::uint64_t{facts->block_bytes}, &bytes))
    return std::nullopt;
  return bytes;
}

}  // namespace thalia
