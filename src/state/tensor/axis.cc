// Pruning takes neurons out of a tensor with these, and an undo puts them back. Every call is one
// table, old index of the axis to new index, applied to each run of elements below the axis. Bits
// are moved and never decoded, so that taking out and putting back gives the same tensor for any
// type, packed ones included.

#include "state/tensor/axis.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/fail.h"
#include "state/tensor/bit_runs.h"
#include "state/tensor/sparse_elements.h"

namespace thalia::state {
namespace {

// The place of an index that the result does not have.
constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

Shape with_extent(const Shape& shape, unsigned axis, std::uint64_t extent) {
  std::vector<std::uint64_t> extents(shape.extents().begin(), shape.extents().end());
  extents[axis] = extent;
  return Shape(std::span<const std::uint64_t>(extents));
}

// A shape seen as [outer, axis, inner]: indices of one outer element and one index of the axis are
// `inner` consecutive elements, which move together.
struct Split {
  Split(const Shape& shape, unsigned axis) : extent(shape[axis]) {
    for (unsigned d = 0; d < shape.rank(); ++d) {
      if (d < axis) outer *= shape[d];
      if (d > axis) inner *= shape[d];
    }
  }
  std::uint64_t outer = 1;
  std::uint64_t extent;
  std::uint64_t inner = 1;
};

// For each index of an axis of `extent` its new one, those listed in order, or kNowhere.
std::vector<std::uint64_t> places_of_listed(std::uint64_t extent,
                                            std::span<const std::uint64_t> indices) {
  std::vector<std::uint64_t> places(extent, kNowhere);
  for (std::size_t i = 0; i < indices.size(); ++i) places[indices[i]] = i;
  return places;
}
// The same for those that are not listed: they close ranks.
std::vector<std::uint64_t> places_of_others(std::uint64_t extent,
                                            std::span<const std::uint64_t> indices) {
  std::vector<std::uint64_t> places(extent, 0);
  for (const std::uint64_t index : indices) places[index] = kNowhere;
  std::uint64_t next = 0;
  for (std::uint64_t& place : places) {
    if (place != kNowhere) place = next++;
  }
  return places;
}

// The table read backwards: for each new index the old one. It turns taking out into putting back.
std::vector<std::uint64_t> inverse(const std::vector<std::uint64_t>& places, std::uint64_t count) {
  std::vector<std::uint64_t> origins(count);
  for (std::uint64_t i = 0; i < places.size(); ++i) {
    if (places[i] != kNowhere) origins[places[i]] = i;
  }
  return origins;
}

// Copies the dense elements of each index of `from` to its place. Runs may begin inside a byte,
// hence bits and not bytes.
void place_dense(const Tensor& from, MutableByteSpan to, const Split& target, unsigned axis,
                 const std::vector<std::uint64_t>& places) {
  const Split source(from.shape(), axis);
  const std::uint64_t bits = dtype_bits(from.dtype());
  for (std::uint64_t outer = 0; outer < source.outer; ++outer) {
    for (std::uint64_t i = 0; i < source.extent; ++i) {
      if (places[i] == kNowhere) continue;
      const std::uint64_t at = (outer * source.extent + i) * source.inner;
      const std::uint64_t there = (outer * target.extent + places[i]) * target.inner;
      copy_bits(from.bytes(), at * bits, to, there * bits, source.inner * bits);
    }
  }
}

struct Stored {
  std::uint64_t position;
  const std::byte* value;
};

// The same for stored elements. They come out unordered where two tensors are put together, or
// if the axis is not the first.
void place_sparse(const SparseElements& from, const Split& source, const Split& target,
                  std::size_t width, const std::vector<std::uint64_t>& places,
                  std::vector<Stored>& stored) {
  for (std::size_t i = 0; i < from.positions.size(); ++i) {
    const std::uint64_t position = from.positions[i];
    const std::uint64_t place = places[position / source.inner % source.extent];
    if (place == kNowhere) continue;
    const std::uint64_t outer = position / source.inner / source.extent;
    stored.push_back({(outer * target.extent + place) * target.inner + position % source.inner,
                      from.values.data() + i * width});
  }
}

// Sorts by position, which csr and coo require.
Tensor sparse_of(const Tensor& like, const Shape& shape, std::vector<Stored>& stored,
                 std::size_t width) {
  std::ranges::sort(stored, {}, &Stored::position);
  SparseElements elements;
  for (const auto& [position, value] : stored) {
    elements.positions.push_back(position);
    elements.values.insert(elements.values.end(), value, value + width);
  }
  return sparse_tensor(like, shape, elements);
}

Tensor rearranged(const Tensor& tensor, unsigned axis, std::uint64_t extent,
                  const std::vector<std::uint64_t>& places) {
  const Shape shape = with_extent(tensor.shape(), axis, extent);
  const Split target(shape, axis);
  if (tensor.is_dense()) {
    Tensor result = Tensor::zeros(tensor.dtype(), shape);
    place_dense(tensor, result.mutable_bytes(), target, axis, places);
    return result;
  }
  const std::size_t width = dtype_bits(tensor.dtype()) / 8;
  const SparseElements elements = sparse_elements(tensor);
  std::vector<Stored> stored;
  place_sparse(elements, Split(tensor.shape(), axis), target, width, places, stored);
  return sparse_of(tensor, shape, stored, width);
}

}  // namespace

Tensor without_indices(const Tensor& tensor, unsigned axis,
                       std::span<const std::uint64_t> indices) {
  const std::uint64_t extent = tensor.shape()[axis];
  return rearranged(tensor, axis, extent - indices.size(), places_of_others(extent, indices));
}

Tensor only_indices(const Tensor& tensor, unsigned axis, std::span<const std::uint64_t> indices) {
  return rearranged(tensor, axis, indices.size(), places_of_listed(tensor.shape()[axis], indices));
}

Tensor with_indices(const Tensor& rest, unsigned axis, std::span<const std::uint64_t> indices,
                    const Tensor& taken) {
  const std::uint64_t extent = rest.shape()[axis] + indices.size();
  const Shape shape = with_extent(rest.shape(), axis, extent);
  if (taken.dtype() != rest.dtype() || taken.encoding() != rest.encoding() ||
      taken.shape() != with_extent(rest.shape(), axis, indices.size()) ||
      (!indices.empty() && indices.back() >= extent)) {
    fail_argument(ErrorCode::size_mismatch, "shape", taken.shape().to_string(),
                  with_extent(rest.shape(), axis, indices.size()).to_string(),
                  "what was taken out no longer fits");
  }
  const auto of_taken = inverse(places_of_listed(extent, indices), indices.size());
  const auto of_rest = inverse(places_of_others(extent, indices), rest.shape()[axis]);
  const Split target(shape, axis);
  if (rest.is_dense()) {
    Tensor result = Tensor::zeros(rest.dtype(), shape);
    place_dense(rest, result.mutable_bytes(), target, axis, of_rest);
    place_dense(taken, result.mutable_bytes(), target, axis, of_taken);
    return result;
  }
  const std::size_t width = dtype_bits(rest.dtype()) / 8;
  const SparseElements kept = sparse_elements(rest);
  const SparseElements returned = sparse_elements(taken);
  std::vector<Stored> stored;
  place_sparse(kept, Split(rest.shape(), axis), target, width, of_rest, stored);
  place_sparse(returned, Split(taken.shape(), axis), target, width, of_taken, stored);
  return sparse_of(rest, shape, stored, width);
}

}  // namespace thalia::state
