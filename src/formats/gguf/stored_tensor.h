// A tensor of a GGUF file as a Tensor: its layout, and its bytes.
#pragma once

#include <memory>

#include "thalia/formats/gguf.h"
#include "thalia/types.h"

namespace thalia::formats::gguf {

/// The layout as stored: elements have their dtype; blocks are u8, each row the bytes of its
/// blocks. The type and the shape are those of a checked header.
TensorLayout stored_layout(GgmlType type, const Shape& shape);
/// The layout of the elements that a tensor in blocks holds.
inline TensorLayout dequantized_layout(const Shape& shape) {
  return {.dtype = DType::f32, .shape = shape};
}

/// Whether elements of the type can be read where the bytes lie.
bool is_aligned(ByteSpan bytes, DType dtype) noexcept;

/// A view of the bytes, or a copy if they are not aligned. @throws FormatError (limit_exceeded).
Tensor stored_tensor(const GgufTensor& tensor, const std::shared_ptr<const void>& owner,
                     const ReadLimits& limits);
/// @throws FormatError (limit_exceeded); UnsupportedError for a type that it cannot restore.
Tensor dequantized_tensor(const GgufTensor& tensor, const ReadLimits& limits, unsigned threads);

}  // namespace thalia::formats::gguf
