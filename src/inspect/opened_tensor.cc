#include "inspect/opened_tensor.h"

#include <utility>

namespace thalia::inspect {

OpenedTensor::OpenedTensor(std::string of_region, std::string own_name, TensorElements elements)
    : region(std::move(of_region)),
      name(std::move(own_name)),
      layout(elements.layout),
      read(std::move(elements.read)) {
  if (!is_sparse(layout.encoding)) return;
  entries = std::make_shared<const state::SparseEntries>(*std::move(elements.all));
  read = [entries = entries](std::span<const SliceRange> ranges, MutableByteSpan out) {
    entries->read_dense(ranges, out);
  };
}

}  // namespace thalia::inspect
