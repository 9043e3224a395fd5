// Keeps the memory of a conversion small: raw payloads are borrowed from the mapping, compressed
// ones are decoded into one buffer that the caller lends, in slices of rows where the tensor is
// large. Memory is asked for only after the limit was checked.
#include "convert/payload_pieces.h"

#include <algorithm>

#include "base/fail.h"
#include "base/parallel.h"
#include "io/memory/allocation_limit.h"

namespace thalia::formats {
namespace {

// Decoded by one thread at a time. A chunk that reaches into two pieces is decoded twice, so pieces
// are larger than chunks usually are.
constexpr std::uint64_t kPieceBytes = 8 << 20;

// Decodes rows [begin, end) of the outermost dimension; a thread takes `rows_in_turn` at a time.
void decode_rows(const TensorView& tensor, std::uint64_t begin, std::uint64_t end,
                 std::uint64_t rows_in_turn, unsigned threads, MutableByteSpan out) {
  const std::uint64_t row_bytes = out.size() / (end - begin);
  parallel_for((end - begin + rows_in_turn - 1) / rows_in_turn, threads, [&](std::size_t i) {
    const std::uint64_t first = begin + i * rows_in_turn;
    const std::uint64_t last = std::min(end, first + rows_in_turn);
    std::vector<SliceRange> ranges;
    for (const std::uint64_t extent : tensor.shape().extents()) ranges.push_back({0, extent});
    ranges[0] = {first, last};
    tensor.read_slice(ranges, out.subspan((first - begin) * row_bytes, (last - first) * row_bytes));
  });
}

void make_room(std::vector<std::byte>& scratch, std::uint64_t bytes, const TensorView& tensor,
               const ReadLimits& limits) {
  io::MemoryBudget(limits, tensor.stored_bytes()).take("payload", bytes);
  scratch.resize(bytes);
}

}  // namespace

ByteSpan fetch_payload(const TensorView& tensor, std::vector<std::byte>& scratch,
                       const ReadLimits& limits) {
  if (tensor.encoding() == Encoding::quantized) {
    make_room(scratch, tensor.dense_bytes(), tensor, limits);
    tensor.read_dense(scratch);
    return scratch;
  }
  if (tensor.is_raw()) return tensor.bytes();
  make_room(scratch, tensor.logical_bytes(), tensor, limits);
  tensor.read(scratch);
  return scratch;
}

void visit_payload(const TensorView& tensor, std::vector<std::byte>& scratch,
                   const ReadOptions& options, const PieceSink& visit) {
  const unsigned threads = resolve_threads(options.work.threads);
  // Rows of packed types may end within a byte.
  const bool has_rows = tensor.encoding() == Encoding::dense && tensor.shape().rank() != 0 &&
                        !dtype_is_packed(tensor.dtype());
  if (tensor.is_raw() || !has_rows || tensor.logical_bytes() <= threads * kPieceBytes) {
    visit(fetch_payload(tensor, scratch, options.input.limits));
    return;
  }
  const std::uint64_t rows = tensor.shape()[0];
  const std::uint64_t row_bytes = tensor.logical_bytes() / rows;
  const std::uint64_t rows_in_turn = std::max<std::uint64_t>(1, kPieceBytes / row_bytes);
  const std::uint64_t rows_at_once = std::min(rows, rows_in_turn * threads);
  for (std::uint64_t begin = 0; begin < rows; begin += rows_at_once) {
    const std::uint64_t end = std::min(rows, begin + rows_at_once);
    make_room(scratch, (end - begin) * row_bytes, tensor, options.input.limits);
    decode_rows(tensor, begin, end, rows_in_turn, threads, scratch);
    visit(scratch);
  }
}

}  // namespace thalia::formats
