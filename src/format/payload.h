// How many bytes a tensor's payload has, and where its arrays lie in it. docs/format/format.md,
// "Payloads".
#pragma once

#include <cstdint>
#include <optional>

#include "format/delta.h"
#include "format/extent.h"
#include "format/tensor.h"
#include "thalia/types.h"

namespace thalia::format {

/// The arrays of a csr or coo payload; extents count from the payload's first byte.
struct SparseParts {
  Extent row_pointers;  ///< csr only
  Extent indices;       ///< column indices of csr, coordinates of coo
  Extent values;
  std::uint64_t length = 0;
};

/// The shape of an entry whose ndim was checked.
Shape shape_of(const TensorEntry& entry) noexcept;
/// The layout of the stored bytes, of an entry whose ndim was checked.
TensorLayout layout_of(const TensorEntry& entry) noexcept;
/// The layout of the tensor that comes out of one that needs its base; dtype and shape are the same
/// for both.
TensorLayout layout_of(const DeltaTensor& side, DType dtype, const Shape& shape) noexcept;

/// The arrays of a csr or coo tensor. nullopt for another encoding, if a length overflows, if
/// the dtype is packed, or if the encoding does not allow the rank.
std::optional<SparseParts> sparse_parts(const TensorLayout& layout) noexcept;

/// Logical bytes of a dense, csr or coo tensor; nullopt if they overflow, or if the encoding
/// does not allow dtype or rank.
std::optional<std::uint64_t> payload_length(const TensorLayout& layout) noexcept;

/// False if 4 bytes are too few for the indices of a csr or coo tensor; true of other encodings.
bool narrow_indices_fit(const TensorLayout& layout) noexcept;

/// The arrays of a sparse_delta payload; extents count from the payload's first byte.
struct SparseDeltaParts {
  std::uint64_t blocks = 0;
  Extent pointers;
  Extent positions;
  Extent values;
  std::uint64_t length = 0;
};

/// The arrays of a sparse_delta that lists so many elements; nullopt if a length overflows, or
/// the dtype is packed. docs/format/deltas.md, "sparse_delta".
std::optional<SparseDeltaParts> sparse_delta_parts(DType dtype, const Shape& shape,
                                                   std::uint64_t listed) noexcept;

/// The arrays of a quantized payload; extents count from the payload's first byte.
struct QuantizedParts {
  std::uint64_t groups = 0;
  Extent widths;  ///< none if all groups have one width
  Extent minima;
  Extent scales;
  Extent codes;
  std::uint64_t length = 0;
};

/// The arrays of a quantized tensor. `group_size` 0: one group; `bits` 0: each group has a width of
/// its own. nullopt if a length overflows, or the dtype is not one of f32, f16, f64 and bf16.
/// docs/format/format.md, "quantized".
std::optional<QuantizedParts> quantized_parts(DType dtype, const Shape& shape, unsigned bits,
                                              std::uint32_t group_size,
                                              std::uint64_t code_length) noexcept;

/// Bytes of the codes of so many elements, where every code has `bits` bits, 1 to 8.
std::uint64_t quantized_code_length(std::uint64_t elements, unsigned bits) noexcept;

/// The alignment of the first byte of a payload of so many logical bytes.
std::uint64_t payload_alignment(std::uint64_t logical_length) noexcept;

}  // namespace thalia::format
