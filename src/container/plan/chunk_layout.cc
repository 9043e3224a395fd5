// Filters work on elements, so the encoder has to know which array a chunk lies in. A wrong answer
// costs bytes and never correctness: the entry names the filter that was used.
#include "container/plan/chunk_layout.h"

#include <algorithm>
#include <array>

#include "format/payload.h"

namespace thalia::container {
namespace {

using codec::Content;
using codec::ElementLayout;

struct Array {
  format::Extent extent;
  ElementLayout layout;
};
// The arrays of a payload; those that it lacks are empty.
using Arrays = std::array<Array, 3>;

Arrays sparse_arrays(const format::SparseParts& parts, bool wide, ElementLayout values) {
  const ElementLayout indices{Content::indices, static_cast<std::uint8_t>(wide ? 8 : 4)};
  return {Array{parts.row_pointers, indices}, {parts.indices, indices}, {parts.values, values}};
}

Arrays arrays_of(const TensorPlan& tensor) {
  const TensorSpec& spec = tensor.spec;
  ElementLayout elements = codec::element_layout(spec.dtype);
  TensorLayout layout = spec.layout();
  // A difference lies as what comes out does.
  if (layout.encoding == Encoding::xor_base && tensor.delta) {
    layout = format::layout_of(*tensor.delta, spec.dtype, spec.shape);
    elements = codec::of_difference(elements);
  }
  if (const auto parts = format::sparse_parts(layout))
    return sparse_arrays(*parts, layout.wide_indices, elements);
  if (layout.encoding == Encoding::sparse_delta) {
    if (const auto parts = format::sparse_delta_parts(spec.dtype, spec.shape, layout.nnz))
      return {Array{parts->pointers, {Content::indices, 8}},
              {parts->positions, {Content::integers, 2}},
              {parts->values, elements}};
  }
  // Codes of quantized tensors are packed, and what else they have is little.
  return {Array{{0, tensor.logical_length},
                layout.encoding == Encoding::dense ? elements : ElementLayout{}}};
}

// Bytes that the extent and [begin, end) have in common.
std::uint64_t overlap(format::Extent extent, std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t from = std::max(extent.offset, begin);
  const std::uint64_t to = std::min(extent.offset + extent.length, end);
  return from < to ? to - from : 0;
}

}  // namespace

ElementLayout chunk_layout(const TensorPlan& tensor, std::uint64_t begin, std::uint64_t end) {
  const Arrays arrays = arrays_of(tensor);
  const Array* greatest = &arrays.front();
  for (const Array& array : arrays) {
    if (overlap(array.extent, begin, end) > overlap(greatest->extent, begin, end))
      greatest = &array;
  }
  return greatest->layout;
}

}  // namespace thalia::container
