#include "formats/mst/dtypes.h"

#include <array>

namespace thalia::formats::mst {
namespace {

struct DTypeName {
  std::string_view written;
  std::string_view read;  ///< what the original takes, too
  DType dtype;
};
constexpr std::array kDTypes{
    DTypeName{"F32", "float32", DType::f32},    DTypeName{"F16", "float16", DType::f16},
    DTypeName{"BF16", "bfloat16", DType::bf16}, DTypeName{"F64", "float64", DType::f64},
    DTypeName{"I32", "int32", DType::i32},      DTypeName{"I64", "int64", DType::i64},
    DTypeName{"I8", "int8", DType::i8},         DTypeName{"U8", "uint8", DType::u8},
    DTypeName{"BOOL", "bool", DType::boolean}};

}  // namespace

std::string_view mst_dtype_name(DType dtype) noexcept {
  for (const DTypeName& known : kDTypes)
    if (known.dtype == dtype) return known.written;
  return {};
}

std::optional<DType> mst_dtype_from_name(std::string_view name) noexcept {
  for (const DTypeName& known : kDTypes)
    if (name == known.written || name == known.read) return known.dtype;
  return std::nullopt;
}

unsigned plane_width(DType dtype) noexcept {
  // The original groups no other types, f64 included.
  if (dtype == DType::f32) return 4;
  return dtype == DType::f16 || dtype == DType::bf16 ? 2 : 0;
}

}  // namespace thalia::formats::mst
