// One change of a tensor, applied in place to bytes of its base. A stage works on any part, so that
// a chain of any length passes over a buffer link by link and no intermediate tensor is ever made.
// What a stage has to know of the whole (the pointers of a list, the factors of a product) is read
// once, by the first thread that needs it, and checked there.

#include "state/delta/chain_stage.h"

#include <span>

#include "base/byte_xor.h"
#include "base/fail.h"
#include "container/read/low_rank_arrays.h"
#include "container/read/sparse_delta.h"
#include "format/delta.h"
#include "format/payload.h"
#include "format/tensor.h"
#include "io/memory/allocation_limit.h"

namespace thalia::state {
namespace {

using format::kDeltaBlockElements;

format::SparseDeltaParts parts_of(const format::TensorEntry& entry) {
  return *format::sparse_delta_parts(entry.dtype, format::shape_of(entry), entry.nnz);
}

template <typename T>
MutableByteSpan bytes_of(std::vector<T>& elements) {
  return std::as_writable_bytes(std::span(elements));
}

}  // namespace

void ChainStage::apply(std::uint64_t begin, MutableByteSpan out,
                       std::vector<std::byte>& scratch) const {
  if (encoding_ == Encoding::sparse_delta) {
    apply_list(begin, out);
  } else if (encoding_ == Encoding::low_rank_delta) {
    apply_low_rank(begin, out);
  } else {
    apply_difference(begin, out, scratch);
  }
}

void ChainStage::apply_difference(std::uint64_t begin, MutableByteSpan out,
                                  std::vector<std::byte>& scratch) const {
  xor_into(out, stored_.part(begin, out.size(), scratch));
}

// The factors are small beside the matrix and needed for each element of it.
void ChainStage::apply_low_rank(std::uint64_t begin, MutableByteSpan out) const {
  const format::TensorEntry& entry = stored_.entry();
  once_.run([&] {
    if (!stored_.is_raw()) stored_.budget().take("payload", stored_.size());
    std::vector<std::byte> buffer;
    factors_ =
        container::read_low_rank(entry, stored_.part(0, stored_.size(), buffer), stored_.budget());
  });
  const DType dtype = entry.dtype;
  codec::add_low_rank(dtype, factors_, begin / (dtype_bits(dtype) / 8), out);
}

const std::vector<std::uint64_t>& ChainStage::pointers() const {
  once_.run([&] {
    const std::uint64_t length = parts_of(stored_.entry()).pointers.length;
    pointers_ = stored_.budget().vector<std::uint64_t>("payload", length / sizeof(std::uint64_t));
    stored_.read(0, bytes_of(pointers_));
    container::check_block_pointers(stored_.entry(), pointers_);
  });
  return pointers_;
}

// Reads the entries of the blocks that the part touches. A part may begin or end within a block;
// put_listed() leaves out what is not in the part.
void ChainStage::apply_list(std::uint64_t begin, MutableByteSpan out) const {
  if (out.empty()) return;
  const std::vector<std::uint64_t>& blocks = pointers();
  const format::TensorEntry& entry = stored_.entry();
  const format::SparseDeltaParts parts = parts_of(entry);
  const unsigned width = dtype_bits(entry.dtype) / 8;
  const std::uint64_t element = begin / width;
  const std::uint64_t end = element + out.size() / width;
  const std::uint64_t first = element / kDeltaBlockElements;
  const std::uint64_t last = (end - 1) / kDeltaBlockElements;
  const std::uint64_t from = blocks[first];
  const std::uint64_t count = blocks[last + 1] - from;
  if (count == 0) return;
  std::vector<std::uint16_t> positions(count);
  stored_.read(parts.positions.offset + from * sizeof(std::uint16_t), bytes_of(positions));
  std::vector<std::byte> values(count * width);
  stored_.read(parts.values.offset + from * width, values);
  for (std::uint64_t block = first; block <= last; ++block) {
    const std::uint64_t at = blocks[block] - from;
    const std::uint64_t listed = blocks[block + 1] - blocks[block];
    const std::span<const std::uint16_t> own = std::span(positions).subspan(at, listed);
    // Checked each time, and not only once: positions are not kept.
    container::check_positions(entry, block, own);
    container::put_listed(own, ByteSpan(values).subspan(at * width, listed * width), width, block,
                          element, out);
  }
}

}  // namespace thalia::state
