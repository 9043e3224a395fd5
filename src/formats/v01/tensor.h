// What 0.1 files hold for a tensor: dense elements, or coordinates of 64 bits with values.
// docs/format/v01.md, "Tensors of version 0.1".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/v01.h"
#include "thalia/state/tensor_value.h"

namespace thalia::formats {

/// In the order of V01DType.
inline constexpr std::array<DType, 6> kV01DTypes{DType::f32, DType::f64,     DType::i32,
                                                 DType::i64, DType::boolean, DType::f16};
std::optional<format::V01DType> v01_dtype(DType dtype) noexcept;
/// The element types that 0.1 files have, for messages.
std::string v01_dtype_list();

/// The same elements in a layout that a 0.1 file has: dense, or coo with wide indices. @throws
/// UnsupportedError (unsupported_feature) for an element type or an extent that 0.1 lacks;
/// FormatError on a bad index.
Tensor v01_storable(const Tensor& tensor);
/// The stored elements of a csr or coo tensor of any type as coo with wide indices. @throws
/// FormatError on a bad index.
Tensor v01_wide_coo(const Tensor& sparse);
/// What is in the file before the bytes of a storable tensor.
std::vector<std::byte> v01_tensor_header(const Tensor& storable);
/// Header and bytes together.
std::uint64_t v01_tensor_bytes(const Tensor& storable);

/// Coordinates where more than 100 elements are more than 90 % zeros, as the original program
/// chooses. NaN is no zero; -0.0 is one, and loses its sign. Sparse tensors stay as they are.
Tensor v01_sparse_by_rule(const Tensor& tensor);

}  // namespace thalia::formats
