#include "formats/onnx/data_types.h"

#include <algorithm>
#include <array>

namespace thalia::formats::onnx {
namespace {

// IR version and opset as the releases of ONNX that brought the type have them.
constexpr auto kDataTypes = [] {
  using enum DataField;
  return std::array{
      DataType{1, "FLOAT", DType::f32, float_data, 4, 9},
      DataType{2, "UINT8", DType::u8, int32_data, 4, 9},
      DataType{3, "INT8", DType::i8, int32_data, 4, 9},
      DataType{4, "UINT16", DType::u16, int32_data, 4, 9},
      DataType{5, "INT16", DType::i16, int32_data, 4, 9},
      DataType{6, "INT32", DType::i32, int32_data, 4, 9},
      DataType{7, "INT64", DType::i64, int64_data, 4, 9},
      DataType{9, "BOOL", DType::boolean, int32_data, 4, 9},
      DataType{10, "FLOAT16", DType::f16, int32_data, 4, 9},
      DataType{11, "DOUBLE", DType::f64, double_data, 4, 9},
      DataType{12, "UINT32", DType::u32, uint64_data, 4, 9},
      DataType{13, "UINT64", DType::u64, uint64_data, 4, 9},
      DataType{14, "COMPLEX64", DType::c64, float_data, 4, 9},
      DataType{15, "COMPLEX128", DType::c128, double_data, 4, 9},
      DataType{16, "BFLOAT16", DType::bf16, int32_data, 4, 9},
      DataType{17, "FLOAT8E4M3FN", DType::f8_e4m3, int32_data, 9, 19},
      DataType{18, "FLOAT8E4M3FNUZ", DType::f8_e4m3fnuz, int32_data, 9, 19},
      DataType{19, "FLOAT8E5M2", DType::f8_e5m2, int32_data, 9, 19},
      DataType{20, "FLOAT8E5M2FNUZ", DType::f8_e5m2fnuz, int32_data, 9, 19},
      DataType{21, "UINT4", DType::u4, int32_data, 10, 21},
      DataType{22, "INT4", DType::i4, int32_data, 10, 21},
      DataType{23, "FLOAT4E2M1", DType::f4_e2m1, int32_data, 11, 23},
      DataType{24, "FLOAT8E8M0", DType::f8_e8m0, int32_data, 12, 24},
      DataType{25, "UINT2", DType::u2, int32_data, 13, 25},
      DataType{26, "INT2", DType::i2, int32_data, 13, 25},
      DataType{27, "FLOAT6E2M3", DType::f6_e2m3, int32_data, 14, 28},
      DataType{28, "FLOAT6E3M2", DType::f6_e3m2, int32_data, 14, 28},
  };
}();

template <typename Is>
const DataType* find_where(const Is& is) noexcept {
  const auto found = std::find_if(kDataTypes.begin(), kDataTypes.end(), is);
  return found == kDataTypes.end() ? nullptr : &*found;
}

}  // namespace

const DataType* find_data_type(std::uint64_t code) noexcept {
  return find_where(
      [&](const DataType& type) { return static_cast<std::uint64_t>(type.code) == code; });
}

const DataType* find_data_type(DType dtype) noexcept {
  return find_where([&](const DataType& type) { return type.dtype == dtype; });
}

const char* data_field_name(DataField field) noexcept {
  switch (field) {
    case DataField::none:
      break;
    case DataField::float_data:
      return "float_data";
    case DataField::int32_data:
      return "int32_data";
    case DataField::string_data:
      return "string_data";
    case DataField::int64_data:
      return "int64_data";
    case DataField::raw_data:
      return "raw_data";
    case DataField::double_data:
      return "double_data";
    case DataField::uint64_data:
      return "uint64_data";
  }
  return "no data";
}

}  // namespace thalia::formats::onnx
