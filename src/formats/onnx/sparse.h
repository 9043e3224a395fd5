// Sparse tensors. ONNX has where their elements are as int64: positions in row-major order, or
// coordinates, element by element. Ours are runs of coordinates, one for each dimension.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/onnx/model.h"
#include "formats/source/piece_sink.h"
#include "io/memory/allocation_limit.h"

namespace thalia::formats::onnx {

/// A SparseTensorProto, and the layout of the coo tensor that it is. @throws as
/// parse_tensor_proto(); FormatError (inconsistent) where values, indices and shape do not go with
/// each other; UnsupportedError for a scalar and for elements that are no whole bytes.
OnnxStored parse_sparse(Message&& message, TensorLayout& layout);

/// @param values, indices as dense tensors. @throws FormatError: (out_of_bounds) for an index
/// outside of the shape or that does not rise, (limit_exceeded).
Tensor coo_of(const TensorLayout& layout, const Tensor& values, const Tensor& indices,
              io::MemoryBudget& budget);

/// Takes the logical bytes of a coo or csr tensor in pieces, and hands on the positions of its
/// elements in row-major order, as int64, and then its values. Holds the indices.
class SparseWriter {
 public:
  /// @param layout whose payload and number of elements do not overflow.
  SparseWriter(const TensorLayout& layout, PieceSink positions, PieceSink values);
  /// @throws FormatError (out_of_bounds) on a bad index.
  void take(ByteSpan piece);

 private:
  std::uint64_t index(std::uint64_t i) const;
  std::uint64_t position_of_coo(std::uint64_t i) const;
  void check_rows() const;
  void write_positions();

  const TensorLayout& layout_;
  PieceSink positions_;
  PieceSink values_;
  std::uint64_t index_bytes_;  ///< and what pads them
  std::vector<std::byte> indices_;
  bool written_ = false;
};

}  // namespace thalia::formats::onnx
