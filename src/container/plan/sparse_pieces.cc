// Nothing is copied: the payload is the caller's arrays with shared zeros between them, in the
// order and at the offsets that docs/format/format.md gives the encoding. Whether indices make
// sense is checked at commit.
#include "container/plan/sparse_pieces.h"

#include <cstdint>
#include <initializer_list>
#include <utility>

#include "base/fail.h"
#include "container/plan/file_plan.h"
#include "format/payload.h"

namespace thalia::container {
namespace {

// The arrays of a sparse payload with the padding between them.
std::vector<ByteSpan> with_padding(
    std::initializer_list<std::pair<format::Extent, ByteSpan>> arrays) {
  std::vector<ByteSpan> pieces;
  std::uint64_t at = 0;
  for (const auto& [extent, bytes] : arrays) {
    if (bytes.size() != extent.length) {
      fail_argument(ErrorCode::size_mismatch, "payload",
                    fmt::format("an array of {} bytes", bytes.size()),
                    std::to_string(extent.length));
    }
    pieces.push_back(zero_bytes().first(extent.offset - at));
    pieces.push_back(bytes);
    at = extent.offset + extent.length;
  }
  return pieces;
}

}  // namespace

template <typename Index>
std::vector<ByteSpan> sparse_pieces(TensorSpec& spec, const CsrArrays<Index>& arrays) {
  spec.encoding = Encoding::csr;
  spec.nnz = arrays.column_indices.size();
  spec.wide_indices = sizeof(Index) == 8;
  // Before sparse_parts(), which relies on a dtype that exists. The plan refuses what has no
  // parts, with a message of its own.
  check_codes(spec);
  const auto parts = format::sparse_parts(spec.layout());
  if (!parts) return {};
  return with_padding({{parts->row_pointers, as_byte_span(arrays.row_pointers)},
                       {parts->indices, as_byte_span(arrays.column_indices)},
                       {parts->values, arrays.values}});
}

template <typename Index>
std::vector<ByteSpan> sparse_pieces(TensorSpec& spec, const CooArrays<Index>& arrays) {
  spec.encoding = Encoding::coo;
  spec.nnz = spec.shape.rank() == 0 ? 0 : arrays.indices.size() / spec.shape.rank();
  spec.wide_indices = sizeof(Index) == 8;
  check_codes(spec);
  const auto parts = format::sparse_parts(spec.layout());
  if (!parts) return {};
  return with_padding(
      {{parts->indices, as_byte_span(arrays.indices)}, {parts->values, arrays.values}});
}

template std::vector<ByteSpan> sparse_pieces(TensorSpec&, const CsrArrays<std::uint32_t>&);
template std::vector<ByteSpan> sparse_pieces(TensorSpec&, const CsrArrays<std::uint64_t>&);
template std::vector<ByteSpan> sparse_pieces(TensorSpec&, const CooArrays<std::uint32_t>&);
template std::vector<ByteSpan> sparse_pieces(TensorSpec&, const CooArrays<std::uint64_t>&);

}  // namespace thalia::container
