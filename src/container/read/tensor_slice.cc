// Slices of dense tensors. A slice is a number of runs of consecutive elements, all of one length,
// that ascend in the file. So a compressed tensor is read with one decoded chunk in memory, each
// chunk at most once, and of a raw one only the blocks of the runs are verified. Elements of packed
// types need not begin at a byte, so runs are counted in bits.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/fail.h"
#include "container/read/chunk_reader.h"
#include "container/read/tensor_reading.h"
#include "format/tensor.h"
#include "io/memory/allocation_limit.h"
#include "thalia/tensor.h"

namespace thalia {
namespace {

// The logical bytes of a dense tensor, a part at a time: where they lie, or from decoded chunks.
class LogicalBytes {
 public:
  LogicalBytes(const detail::OpenFile& file, const format::TensorEntry& entry)
      : file_(file), entry_(entry) {
    if (entry.chunk_count != 0) chunks_.emplace(file, entry);
  }

  /// Calls visit(part) in order.
  template <typename Visit>
  void visit(std::uint64_t begin, std::uint64_t end, Visit visit) {
    if (begin == end) return;
    if (!chunks_) {
      const std::uint64_t offset = entry_.stored_offset + begin;
      file_.mapping().read_ahead(offset, end - begin);
      return visit(file_.verified_payload(entry_, offset, end - begin));
    }
    // A run may begin in one chunk and end in the next.
    while (begin < end) {
      const std::uint64_t chunk = begin / chunks_->chunk_bytes();
      load(static_cast<std::uint32_t>(chunk));
      const std::uint64_t chunk_begin = chunk * chunks_->chunk_bytes();
      const std::uint64_t part_end = std::min<std::uint64_t>(end, chunk_begin + buffer_.size());
      visit(ByteSpan(buffer_).subspan(begin - chunk_begin, part_end - begin));
      begin = part_end;
    }
  }

 private:
  void load(std::uint32_t chunk) {
    if (loaded_ == chunk) return;
    const std::uint64_t length = chunks_->raw_length(chunk);
    io::MemoryBudget(file_.options().input.limits, entry_.stored_length).take("payload", length);
    // First, as a chunk that fails to decode leaves its bytes half written.
    loaded_.reset();
    buffer_.resize(length);
    chunks_->decode(chunk, buffer_);
    loaded_ = chunk;
  }

  const detail::OpenFile& file_;
  const format::TensorEntry& entry_;
  std::optional<container::ChunkReader> chunks_;
  std::optional<std::uint32_t> loaded_;
  std::vector<std::byte> buffer_;
};

// Appends bits to a byte buffer, least significant first.
class BitWriter {
 public:
  explicit BitWriter(MutableByteSpan out) : out_(out) {}

  /// `count` bits of `bytes`, from bit `first` on.
  void append(ByteSpan bytes, std::uint64_t first, std::uint64_t count) {
    if (first % 8 == 0 && at_ % 8 == 0) {  // whole bytes, the common case
      const std::uint64_t whole = count / 8;
      std::memcpy(out_.data() + at_ / 8, bytes.data() + first / 8, whole);
      at_ += whole * 8;
      first += whole * 8;
      count -= whole * 8;
    }
    for (; count > 0; --count, ++first, ++at_) {
      const auto bit = (std::to_integer<unsigned>(bytes[first / 8]) >> (first % 8)) & 1u;
      // Starts each byte with zeros, so that unused bits of the last one are zero.
      if (at_ % 8 == 0) out_[at_ / 8] = std::byte{0};
      out_[at_ / 8] |= static_cast<std::byte>(bit << (at_ % 8));
    }
  }

 private:
  MutableByteSpan out_;
  std::uint64_t at_ = 0;
};

struct SlicePlan {
  std::uint64_t elements = 1;  ///< of the slice
  std::uint64_t run = 1;       ///< consecutive elements
  unsigned outer_rank = 0;     ///< dimensions that are stepped through
};

SlicePlan plan_slice(const Shape& shape, std::span<const SliceRange> ranges) {
  if (ranges.size() != shape.rank()) {
    fail_argument(ErrorCode::bad_argument, "slice", fmt::format("{} ranges", ranges.size()),
                  fmt::format("one for each of {} dimensions", shape.rank()));
  }
  SlicePlan plan;
  for (unsigned d = 0; d < shape.rank(); ++d) {
    if (ranges[d].begin > ranges[d].end || ranges[d].end > shape[d]) {
      fail_argument(ErrorCode::bad_argument, fmt::format("slice, dimension {}", d),
                    fmt::format("[{}, {})", ranges[d].begin, ranges[d].end),
                    fmt::format("within [0, {})", shape[d]));
    }
    plan.elements *= ranges[d].end - ranges[d].begin;  // at most the tensor's own count
  }
  // Dimensions that are taken whole, from the innermost on, join the run of the one before them.
  unsigned d = shape.rank();
  bool whole = true;
  while (d > 0 && whole) {
    --d;
    plan.run *= ranges[d].end - ranges[d].begin;
    whole = ranges[d].begin == 0 && ranges[d].end == shape[d];
  }
  plan.outer_rank = d;
  return plan;
}

}  // namespace

std::uint64_t TensorView::slice_bytes(std::span<const SliceRange> ranges) const {
  return container::with_names(*file_, region_, name_, [&] {
    const SlicePlan plan = plan_slice(shape_, ranges);
    return *Shape({plan.elements}).byte_length(dtype());
  });
}

void TensorView::read_slice(std::span<const SliceRange> ranges, MutableByteSpan out) const {
  container::with_names(*file_, region_, name_, [&] {
    if (encoding() != Encoding::dense) {
      fail_argument(ErrorCode::wrong_state, "encoding", std::string(encoding_name(encoding())),
                    "dense");
    }
    const SlicePlan plan = plan_slice(shape_, ranges);
    const std::uint64_t length = *Shape({plan.elements}).byte_length(dtype());
    if (out.size() != length) {
      fail_argument(ErrorCode::size_mismatch, "out", fmt::format("{} bytes", out.size()),
                    std::to_string(length));
    }
    if (plan.elements == 0) return;

    const std::uint64_t bits = dtype_bits(dtype());
    std::uint64_t stride[Shape::kMaxRank];  // in elements
    std::uint64_t step = 1;
    for (unsigned d = shape_.rank(); d-- > 0; step *= shape_[d]) stride[d] = step;

    LogicalBytes source(*file_, *entry_);
    BitWriter writer(out);
    std::uint64_t at[Shape::kMaxRank];
    for (unsigned d = 0; d < shape_.rank(); ++d) at[d] = ranges[d].begin;
    while (true) {
      std::uint64_t element = 0;
      for (unsigned d = 0; d < shape_.rank(); ++d) element += at[d] * stride[d];
      // In bits, as elements may be packed; the part then starts at the byte that this bit lies in.
      std::uint64_t first_bit = element * bits;
      std::uint64_t left = plan.run * bits;
      source.visit(first_bit / 8, (first_bit + left + 7) / 8, [&](ByteSpan part) {
        const std::uint64_t skip = first_bit % 8;
        const std::uint64_t count = std::min<std::uint64_t>(left, part.size() * 8 - skip);
        writer.append(part, skip, count);
        first_bit += count;
        left -= count;
      });
      unsigned d = plan.outer_rank;  // step the outer dimensions like an odometer
      while (d > 0 && ++at[d - 1] == ranges[d - 1].end) {
        at[d - 1] = ranges[d - 1].begin;
        --d;
      }
      if (d == 0) return;
    }
  });
}

}  // namespace thalia
