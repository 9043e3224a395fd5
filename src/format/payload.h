// How many bytes a tensor's payload has, and where its arrays lie in it. docs/format.md,
// "Payloads".
#pragma once

#include <cstdint>
#include <optional>

#include "format/extent.h"
#include "thalia/dtype.h"
#include "thalia/format/tensor.h"
#include "thalia/shape.h"

namespace thalia::format {

/// The arrays of a csr or coo payload; extents count from the payload's first byte.
struct SparseParts {
  Extent row_pointers;  ///< csr only
  Extent indices;       ///< column indices of csr, coordinates of coo
  Extent values;
  std::uint64_t length = 0;
};

/// nullopt where a length overflows, the rank is not 2, or the dtype is packed.
std::optional<SparseParts> csr_parts(DType dtype, const Shape& shape, std::uint64_t nnz,
                                     bool wide) noexcept;
/// nullopt where a length overflows, the rank is 0, or the dtype is packed.
std::optional<SparseParts> coo_parts(DType dtype, const Shape& shape, std::uint64_t nnz,
                                     bool wide) noexcept;

/// Logical bytes of a dense, csr or coo tensor; nullopt where they overflow or the combination is
/// none.
std::optional<std::uint64_t> payload_length(Encoding encoding, DType dtype, const Shape& shape,
                                            std::uint64_t nnz, bool wide) noexcept;

/// The arrays of a sparse_delta payload; extents count from the payload's first byte.
struct SparseDeltaParts {
  std::uint64_t blocks = 0;
  Extent pointers;
  Extent positions;
  Extent values;
  std::uint64_t length = 0;
};

/// nullopt where a length overflows, or the dtype is packed. docs/format.md, "sparse_delta".
std::optional<SparseDeltaParts> sparse_delta_parts(DType dtype, const Shape& shape,
                                                   std::uint64_t listed) noexcept;

/// What the first byte of a payload of this many logical bytes is aligned to.
std::uint64_t payload_alignment(std::uint64_t logical_length) noexcept;

}  // namespace thalia::format
