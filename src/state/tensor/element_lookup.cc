// Random access to numbers, for pruning and for rules that look at single synapses. Numbers are
// decoded once; a sparse tensor is searched by halving, which needs its positions to ascend.

#include "state/tensor/element_lookup.h"

#include <algorithm>
#include <utility>

#include "state/tensor/element_numbers.h"
#include "state/tensor/sparse_elements.h"

namespace thalia::state {

ElementLookup::ElementLookup(const Tensor& tensor)
    : is_dense_(tensor.is_dense()), numbers_(numbers_of(tensor.dtype(), tensor.values())) {
  if (!is_dense_) positions_ = sparse_elements(tensor).positions;
}

double ElementLookup::at(std::uint64_t position) const {
  if (is_dense_) return numbers_[position];
  const auto found = std::ranges::lower_bound(positions_, position);
  if (found == positions_.end() || *found != position) return 0;
  return numbers_[static_cast<std::size_t>(found - positions_.begin())];
}

}  // namespace thalia::state
