// Dense tensors are read in parts, through a chain as well. What is quantized, sparse, or packed
// and of a delta is read whole.
#include "state/diff/diffed_file.h"

#include "state/tensor/slice.h"
#include "thalia/state/tensor_value.h"
#include "thalia/types.h"

namespace thalia::state {

FactsOf DiffedFile::facts() const {
  if (!chain) return tensor_facts;
  return [files = chain](const TensorView& view) {
    const ChainTensor tensor = files->describe(view);
    return TensorFacts{.layout = tensor.layout,
                       .role = view.role(),
                       .logical_bytes = tensor.logical_bytes,
                       .content_hash = tensor.content_hash,
                       .restored = view.encoding() == Encoding::quantized};
  };
}

ComparedTensor compared_tensor(const DiffedFile& file, const TensorView& view,
                               const TensorFacts& facts, const ReadLimits& limits) {
  const TensorLayout& layout = facts.layout;
  ComparedTensor tensor{.dtype = layout.dtype,
                        .shape = layout.shape,
                        .sparse = is_sparse(layout.encoding),
                        .entries = layout.nnz,
                        .read_bytes = facts.logical_bytes};
  if (!file.reader.delta_base()) {
    // As it is stored: a chain of one file describes a quantized tensor as it is restored.
    if (view.encoding() == Encoding::dense) {
      tensor.read = [view](std::span<const SliceRange> ranges, MutableByteSpan out) {
        view.read_slice(ranges, out);
      };
    } else {
      tensor.load = [view, &limits] { return Tensor::from(view, limits); };
    }
  } else if (layout.encoding == Encoding::dense && !dtype_is_packed(layout.dtype)) {
    tensor.read = [chain = *file.chain, view, layout](std::span<const SliceRange> ranges,
                                                      MutableByteSpan out) {
      const std::uint64_t width = dtype_bits(layout.dtype) / 8;
      for_each_run(layout.shape, ranges, [&](std::uint64_t first, std::uint64_t count) {
        chain.read_part(view, first * width, out.first(count * width));
        out = out.subspan(count * width);
      });
    };
  } else {
    tensor.load = [chain = *file.chain, view] { return chain.read(view); };
  }
  return tensor;
}

}  // namespace thalia::state
