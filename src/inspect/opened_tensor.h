// One tensor as cat sees it, whichever format its file has.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>

#include "thalia/formats/any_tensor.h"
#include "thalia/state/statistics.h"
#include "thalia/state/tensor_value.h"
#include "thalia/tensor.h"
#include "thalia/types.h"

namespace thalia::inspect {

// The stored entries of a csr or coo tensor, whichever way they are laid out.

class ShownEntries {
 public:
  /// Checks every index. @throws FormatError.
  explicit ShownEntries(Tensor tensor);
  ShownEntries(const ShownEntries&) = delete;
  ShownEntries& operator=(const ShownEntries&) = delete;

  /// Called with an entry's coordinates and the position of its value; returns whether to go on.
  using Visit = std::function<bool(std::span<const std::uint64_t>, std::uint64_t)>;
  /// Visits the entries inside the ranges, one range for each dimension, in row-major order. It
  /// looks only at entries between the first and the last coordinate.
  void visit(std::span<const SliceRange> ranges, const Visit& visit) const;

  const Tensor& tensor() const noexcept { return tensor_; }
  /// The values, one an entry, of the tensor's dtype.
  ByteSpan values() const;
  /// The part of the tensor densely, zero where nothing is stored.
  void read_dense(std::span<const SliceRange> ranges, MutableByteSpan out) const;

 private:
  using Arrays = std::variant<CsrView, CooView>;

  Tensor tensor_;
  Arrays arrays_;  ///< of the tensor's bytes
};

struct OpenedTensor {
  /// @throws FormatError for bad indices of a sparse one.
  OpenedTensor(std::string region, std::string name, TensorElements elements);

  std::string region;  ///< empty where the format has none
  std::string name;
  TensorLayout layout;
  /// Reads a part densely, row-major, packed as the dtype is; one range a dimension. Holds the file
  /// open.
  SliceReader read;
  /// Of csr and coo only; their tensor() has the bytes in its own encoding.
  std::shared_ptr<const ShownEntries> entries;
};

}  // namespace thalia::inspect
