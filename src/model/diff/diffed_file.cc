// Dense tensors are read in parts, through a chain as well. What is quantized, sparse, or packed
// and of a delta is read whole.
#include "model/diff/diffed_file.h"

#include <vector>

#include "thalia/tensor_layout.h"
#include "thalia/tensor_value.h"

namespace thalia::model {
namespace {

// The ranges of a dense tensor, in runs that follow each other in it. Of whole bytes an element.
void read_by_parts(const TensorLayout& layout, std::span<const SliceRange> ranges,
                   MutableByteSpan out, const PartReader& read) {
  if (out.empty()) return;
  const std::uint64_t width = dtype_bits(layout.dtype) / 8;
  // One run: as many inner dimensions as are taken whole, and the range of the one around them.
  std::size_t outer = ranges.size();
  std::uint64_t run = 1;
  while (outer > 0) {
    --outer;
    run *= ranges[outer].end - ranges[outer].begin;
    if (ranges[outer].begin != 0 || ranges[outer].end != layout.shape[static_cast<unsigned>(outer)])
      break;
  }
  std::vector<std::uint64_t> at;
  for (const SliceRange& range : ranges) at.push_back(range.begin);
  for (; !out.empty(); out = out.subspan(run * width)) {
    std::uint64_t element = 0;
    for (std::size_t d = 0; d < at.size(); ++d)
      element = element * layout.shape[static_cast<unsigned>(d)] + at[d];
    read(element * width, out.first(run * width));
    for (std::size_t d = outer; d > 0; --d) {
      if (++at[d - 1] < ranges[d - 1].end) break;
      at[d - 1] = ranges[d - 1].begin;
    }
  }
}

}  // namespace

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
      read_by_parts(layout, ranges, out, [&](std::uint64_t begin, MutableByteSpan part) {
        chain.read_part(view, begin, part);
      });
    };
  } else {
    tensor.load = [chain = *file.chain, view] { return chain.read(view); };
  }
  return tensor;
}

}  // namespace thalia::model
