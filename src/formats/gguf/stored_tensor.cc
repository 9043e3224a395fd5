#include "formats/gguf/stored_tensor.h"

#include <array>
#include <cstring>
#include <span>

#include "formats/gguf/value_types.h"
#include "state/tensor/counted_tensor.h"

namespace thalia::formats::gguf {

TensorLayout stored_layout(GgmlType type, const Shape& shape) {
  const GgmlTypeFacts& facts = *ggml_type_facts(type);
  if (facts.dtype) return {.dtype = *facts.dtype, .shape = shape};
  std::array<std::uint64_t, Shape::kMaxRank> extents{};
  const unsigned rank = shape.rank();
  for (unsigned i = 0; i < rank; ++i) extents[i] = shape[i];
  extents[rank - 1] = extents[rank - 1] / facts.block_elements * facts.block_bytes;
  return {.dtype = DType::u8, .shape = Shape(std::span(extents.data(), rank))};
}

bool is_aligned(ByteSpan bytes, DType dtype) noexcept {
  return reinterpret_cast<std::uintptr_t>(bytes.data()) % dtype_alignment(dtype) == 0;
}

Tensor stored_tensor(const GgufTensor& tensor, const std::shared_ptr<const void>& owner,
                     const ReadLimits& limits) {
  const TensorLayout layout = stored_layout(tensor.type, tensor.shape);
  if (is_aligned(tensor.bytes, layout.dtype)) return Tensor::adopt(layout, tensor.bytes, owner);
  // A file with an alignment of less than an element.
  io::MemoryBudget budget(limits, tensor.bytes.size());
  return state::counted_copy(budget, "tensors", layout, tensor.bytes);
}

Tensor dequantized_tensor(const GgufTensor& tensor, const ReadLimits& limits, unsigned threads) {
  const TensorLayout layout = dequantized_layout(tensor.shape);
  io::MemoryBudget budget(limits, tensor.bytes.size());
  return state::counted_tensor(budget, "tensors", layout, [&](MutableByteSpan out) {
    dequantize_ggml(tensor.type, tensor.bytes,
                    {reinterpret_cast<float*>(out.data()), out.size() / sizeof(float)}, threads);
  });
}

}  // namespace thalia::formats::gguf
