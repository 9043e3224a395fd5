// TensorLayout: what tells how a tensor's bytes are to be read, and what they are for.
// docs/format/format.md, "Payloads".
#pragma once

#include <cstdint>

#include "thalia/dtype.h"
#include "thalia/shape.h"

namespace thalia {

/// Persistent: values are part of the format.
enum class Role : std::uint8_t {
  weights = 0,
  homeostatic = 1,
  region_state = 2,
  learning_state = 3,
  oscillator = 4,
  neuromodulator = 5,
  optimizer = 6,
  buffer = 7,
  other = 8,
  bias = 9,
  normalization = 10,
  embedding = 11,
};
inline constexpr std::uint8_t kRoleCount = 12;

/// Persistent: values are part of the format.
enum class Encoding : std::uint8_t {
  dense = 0,
  csr = 1,
  coo = 2,
  quantized = 3,
  same_as_base = 4,
  xor_base = 5,
  sparse_delta = 6,
  low_rank_delta = 7,
};
inline constexpr std::uint8_t kEncodingCount = 8;

/// True of csr and coo: index arrays say where the stored elements are.
constexpr bool is_sparse(Encoding encoding) noexcept {
  return encoding == Encoding::csr || encoding == Encoding::coo;
}

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
