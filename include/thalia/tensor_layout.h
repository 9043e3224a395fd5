// TensorLayout: what tells how a tensor's bytes are to be read. docs/format.md, "Payloads".
#pragma once

#include <cstdint>

#include "thalia/dtype.h"
#include "thalia/format/tensor.h"
#include "thalia/shape.h"

namespace thalia {

using format::Encoding;
using format::Role;

/// The one place that declares these five; what needs them holds a layout or is made of one.
struct TensorLayout {
  DType dtype = DType::f32;
  Shape shape{};
  Encoding encoding = Encoding::dense;  ///< dense, csr (rank 2) or coo (rank 1 and up)
  std::uint64_t nnz = 0;                ///< stored elements of csr and coo
  bool wide_indices = false;            ///< csr and coo: indices are u64, else u32

  friend bool operator==(const TensorLayout&, const TensorLayout&) = default;
};

}  // namespace thalia
