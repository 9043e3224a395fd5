// The entries of a csr or coo tensor in the order of the dense elements that they are.
#pragma once

#include <cstdint>
#include <span>

#include "thalia/state/tensor_value.h"
#include "thalia/tensor.h"

namespace thalia::state {

/// Immutable; any number of threads may use one.
class SparseEntries {
 public:
  /// Checks the indices. @throws FormatError.
  explicit SparseEntries(Tensor tensor);

  std::uint64_t count() const noexcept { return tensor_.nnz(); }
  DType dtype() const noexcept { return tensor_.dtype(); }
  ByteSpan values() const noexcept { return values_; }  ///< as decode_elements takes them
  /// The number of entry `i` among the dense elements, in row-major order; ascending.
  std::uint64_t position(std::uint64_t i) const;
  /// The positions of entries [first, first + out.size()).
  void positions(std::uint64_t first, std::span<std::uint64_t> out) const;
  /// The first entry at `position` or behind it; count() where there is none.
  std::uint64_t first_at(std::uint64_t position) const;

 private:
  std::uint64_t row_of(std::uint64_t entry) const;

  Tensor tensor_;
  CsrView csr_;
  CooView coo_;
  ByteSpan values_;
};

}  // namespace thalia::state
