// The entries of a csr or coo tensor in the order of the dense elements that they are.
#pragma once

#include <cstdint>
#include <functional>
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
  /// The first entry at `position` or after it; count() if there is none.
  std::uint64_t first_at(std::uint64_t position) const;

  /// Called with an entry's coordinates and its number; returns whether to go on.
  using Visit = std::function<bool(std::span<const std::uint64_t>, std::uint64_t)>;
  /// Visits the entries inside the ranges, one range for each dimension, in row-major order. It
  /// looks only at entries between the first and the last coordinate.
  void visit(std::span<const SliceRange> ranges, const Visit& visit) const;
  /// The part of the tensor densely, zero if nothing is stored.
  void read_dense(std::span<const SliceRange> ranges, MutableByteSpan out) const;

  const Tensor& tensor() const noexcept { return tensor_; }

 private:
  std::uint64_t row_of(std::uint64_t entry) const;

  Tensor tensor_;
  CsrView csr_;
  CooView coo_;
  ByteSpan values_;
};

}  // namespace thalia::state
