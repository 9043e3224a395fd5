// Numbers of a tensor by their places, however it is stored.
#pragma once

#include <cstdint>
#include <vector>

#include "thalia/state/tensor_value.h"

namespace thalia::state {

/// A copy of the tensor's numbers. Elements that a sparse tensor does not store are 0.
class ElementLookup {
 public:
  /// @throws UsageError (dtype_mismatch) for a type that holds no numbers; FormatError on a bad
  /// index.
  explicit ElementLookup(const Tensor& tensor);

  /// The element with this number in row-major order.
  double at(std::uint64_t position) const;
  /// Calls visit(position, number) for each element of a dense tensor, each stored one of others.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (std::size_t i = 0; i < numbers_.size(); ++i)
      visit(is_dense_ ? i : positions_[i], numbers_[i]);
  }

 private:
  bool is_dense_;
  std::vector<std::uint64_t> positions_;  ///< of a sparse tensor, ascending
  std::vector<double> numbers_;
};

}  // namespace thalia::state
