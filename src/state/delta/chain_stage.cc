// One change of a tensor, applied in place to bytes of its base. A stage works on any part, so that
// a chain of any length passes over a buffer link by link and no intermediate tensor is ever made.
// What a stage has to know of the whole (the pointers of a list, the factors of a product, the
// tables of steps) is read once, by the first thread that needs it, and checked there. Chunks of
// steps decode as a whole, so that a part is widened to them before it is made.

#include "state/delta/chain_stage.h"

#include <algorithm>
#include <span>

#include "base/byte_xor.h"
#include "base/fail.h"
#include "container/read/low_rank_arrays.h"
#include "container/read/sparse_delta.h"
#include "container/read/step_delta.h"
#include "format/delta.h"
#include "format/extent.h"
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
  } else if (encoding_ == Encoding::step_delta) {
    apply(begin, out, out, scratch);
  } else {
    apply_difference(begin, out, scratch);
  }
}

const codec::StepDecoder& ChainStage::steps() const {
  once_.run([&] {
    std::vector<std::byte> buffer;
    const format::TensorEntry& entry = stored_.entry();
    const ByteSpan head = stored_.part(0, container::step_head_bytes(entry), buffer);
    steps_.emplace(container::read_step_delta(entry, head, stored_.budget()));
    // A part is made in whole chunks: at most one more at either end.
    const std::uint64_t chunk = steps_->chunk_elements() * (dtype_bits(entry.dtype) / 8);
    stored_.budget().take("payload", std::min(2 * chunk, tensor_bytes()));
  });
  return *steps_;
}

std::uint64_t ChainStage::tensor_bytes() const {
  const format::TensorEntry& entry = stored_.entry();
  return *format::shape_of(entry).byte_length(entry.dtype);
}

void ChainStage::widen(std::uint64_t& begin, std::uint64_t& end) const {
  if (encoding_ != Encoding::step_delta || begin == end) return;
  const std::uint64_t chunk = steps().chunk_elements() * (dtype_bits(stored_.entry().dtype) / 8);
  begin -= begin % chunk;
  end = std::min(format::align_up(end, chunk), tensor_bytes());
}

// The part is of whole chunks.
void ChainStage::apply(std::uint64_t begin, ByteSpan base, MutableByteSpan out,
                       std::vector<std::byte>& scratch) const {
  if (out.empty()) return;
  const codec::StepDecoder& decoder = steps();
  const std::uint64_t width = dtype_bits(stored_.entry().dtype) / 8;
  std::uint64_t number = begin / width / decoder.chunk_elements();
  for (std::uint64_t at = 0; at < out.size(); ++number) {
    const auto chunk = decoder.chunk(number);
    const std::uint64_t length = chunk.elements * width;
    container::decode_steps(decoder, stored_.part(chunk.offset, chunk.length, scratch),
                            base.subspan(at, length), out.subspan(at, length));
    at += length;
  }
}

void ChainStage::prefetch(std::uint64_t begin, std::uint64_t length) const {
  if (encoding_ == Encoding::xor_base) return stored_.prefetch(begin, length);
  if (encoding_ != Encoding::step_delta) {
    if (begin == 0) stored_.prefetch(0, stored_.size());
    return;
  }
  // Chunks are nearly alike: where they lie is near enough in proportion.
  const double share = static_cast<double>(stored_.size()) /
                       static_cast<double>(std::max<std::uint64_t>(tensor_bytes(), 1));
  const auto place = [&](std::uint64_t at) {
    return std::min(static_cast<std::uint64_t>(static_cast<double>(at) * share), stored_.size());
  };
  stored_.prefetch(place(begin), place(begin + length) - place(begin));
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
