// Tensors whose size a file decides: the memory of each counts before it is allocated.
#pragma once

#include <functional>
#include <string_view>

#include "io/memory/allocation_limit.h"
#include "thalia/state/tensor_value.h"

namespace thalia::state {

/// As Tensor::filled(). @throws FormatError (limit_exceeded) before anything is allocated.
Tensor counted_tensor(io::MemoryBudget& budget, std::string_view section,
                      const TensorLayout& layout, const std::function<void(MutableByteSpan)>& fill);
/// `bytes` of a layout, copied. @throws as counted_tensor().
Tensor counted_copy(io::MemoryBudget& budget, std::string_view section, const TensorLayout& layout,
                    ByteSpan bytes);
/// As Tensor::to_dense(): a sparse tensor of few bytes may claim any shape. @throws as
/// counted_tensor().
Tensor counted_dense(io::MemoryBudget& budget, std::string_view section, const Tensor& tensor);

}  // namespace thalia::state
