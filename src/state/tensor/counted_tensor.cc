#include "state/tensor/counted_tensor.h"

#include <algorithm>
#include <limits>

#include "format/payload.h"

namespace thalia::state {

Tensor counted_tensor(io::MemoryBudget& budget, std::string_view section,
                      const TensorLayout& layout,
                      const std::function<void(MutableByteSpan)>& fill) {
  budget.take(section,
              format::payload_length(layout).value_or(std::numeric_limits<std::uint64_t>::max()));
  return Tensor::filled(layout, fill);
}

Tensor counted_copy(io::MemoryBudget& budget, std::string_view section, const TensorLayout& layout,
                    ByteSpan bytes) {
  return counted_tensor(budget, section, layout,
                        [&](MutableByteSpan out) { std::ranges::copy(bytes, out.begin()); });
}

Tensor counted_dense(io::MemoryBudget& budget, std::string_view section, const Tensor& tensor) {
  if (tensor.is_dense()) return tensor;
  budget.take(section, tensor.shape()
                           .byte_length(tensor.dtype())
                           .value_or(std::numeric_limits<std::uint64_t>::max()));
  return tensor.to_dense();
}

}  // namespace thalia::state
