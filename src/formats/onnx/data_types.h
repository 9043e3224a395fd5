// The element types of ONNX and ours. Each of ours but ternary and binary is one of them, and its
// bytes in a file are ours: little endian, and packed from the lowest bit on.
#pragma once

#include <cstdint>
#include <optional>

#include "thalia/types.h"

namespace thalia::formats::onnx {

/// The fields of a TensorProto that hold elements.
enum class DataField : std::uint8_t {
  none = 0,
  float_data = 4,
  int32_data = 5,
  string_data = 6,
  int64_data = 7,
  raw_data = 9,
  double_data = 10,
  uint64_data = 11,
};
const char* data_field_name(DataField field) noexcept;

struct DataType {
  int code;          ///< TensorProto.DataType
  const char* name;  ///< its name there
  DType dtype;
  DataField field;  ///< the typed one; raw_data is of all
  int ir_version;   ///< the first that has the type; models without graph inputs need 4
  int opset;        ///< of ai.onnx, what came with that version
};

/// nullptr for a code that is not assigned, or is no type of numbers.
const DataType* find_data_type(std::uint64_t code) noexcept;
/// nullptr for a dtype that ONNX lacks.
const DataType* find_data_type(DType dtype) noexcept;
inline constexpr std::uint64_t kStringType = 8;

}  // namespace thalia::formats::onnx
