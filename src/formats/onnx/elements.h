// Elements that are in typed fields, as numbers of protobuf, put into bytes.
#pragma once

#include <cstdint>

#include "formats/onnx/data_types.h"
#include "io/memory/allocation_limit.h"
#include "thalia/state/tensor_value.h"
#include "thalia/types.h"

namespace thalia::formats::onnx {

struct TensorProto;

/// Bytes of a number in float_data and double_data; 0 of varints.
unsigned fixed_width(DataField field) noexcept;
/// Numbers that a typed field has for a tensor whose bytes do not overflow: one an element; two a
/// complex one; one a byte of 2-bit and 4-bit ones.
std::uint64_t typed_entries(const DataType& type, const Shape& shape) noexcept;

/// The tensor of a typed field. @throws FormatError: (inconsistent) if there are more or fewer
/// numbers, (bad_value) if one does not fit the type, (limit_exceeded).
Tensor read_typed(ByteSpan file, const TensorProto& tensor, io::MemoryBudget& budget);

}  // namespace thalia::formats::onnx
