// A base of another shape, in the shape of the result: the second step of fitting
// (docs/format/deltas.md, "xor_base"). Each row of the result is the beginning of a row of the
// base, or zeros, or both. Rows ascend on both sides, so that rows that lie near each other in the
// base are read in one go.

#include "state/delta/fitted_base.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "format/extent.h"

namespace thalia::state {
namespace {

// Bytes of the base that are read at once, with what lies between the rows.
constexpr std::uint64_t kSpan = 2 << 20;
// Sources are read at multiples of 16 bytes.
constexpr std::uint64_t kPieceAlignment = 16;

// Where a row, which is one run of the last dimension, begins in the base, in elements; -1 where
// the base does not have it.
std::int64_t base_row(const Shape& base, const Shape& shape, std::uint64_t row) {
  std::uint64_t place = 0;
  std::uint64_t stride = base[base.rank() - 1];
  for (unsigned d = shape.rank() - 1; d-- > 0;) {
    const std::uint64_t i = row % shape[d];
    row /= shape[d];
    if (i >= base[d]) return -1;
    place += i * stride;
    stride *= base[d];
  }
  return static_cast<std::int64_t>(place);
}

}  // namespace

struct FittedBase::Piece {
  std::uint64_t from;  ///< in the base
  std::uint64_t to;    ///< in what is asked for
  std::uint64_t length;
};

// Collects neighbouring pieces and reads them together: a compressed base decodes a whole chunk for
// each.
class FittedBase::Gather {
 public:
  Gather(const ByteSource& base, MutableByteSpan out) : base_(base), out_(out) {}

  void add(Piece piece) {
    if (!pieces_.empty()) {
      Piece& last = pieces_.back();
      if (last.from + last.length == piece.from && last.to + last.length == piece.to) {
        last.length += piece.length;
        return;
      }
      if (piece.from + piece.length - pieces_.front().from > kSpan) flush();
    }
    pieces_.push_back(piece);
  }

  void flush() {
    if (pieces_.empty()) return;
    const std::uint64_t begin = pieces_.front().from / kPieceAlignment * kPieceAlignment;
    const std::uint64_t end =
        std::min(format::align_up(pieces_.back().from + pieces_.back().length, kPieceAlignment),
                 base_.size());
    const ByteSpan found = base_.part(begin, end - begin, buffer_);
    for (const Piece& piece : pieces_)
      std::memcpy(out_.data() + piece.to, found.data() + (piece.from - begin), piece.length);
    pieces_.clear();
  }

 private:
  const ByteSource& base_;
  MutableByteSpan out_;
  std::vector<Piece> pieces_;
  std::vector<std::byte> buffer_;
};

FittedBase::FittedBase(std::shared_ptr<const ByteSource> base, const Shape& base_shape,
                       const Shape& shape, unsigned width)
    : base_(std::move(base)),
      base_shape_(base_shape),
      shape_(shape),
      width_(width),
      size_(*shape.element_count() * width) {}

void FittedBase::read(std::uint64_t begin, MutableByteSpan out) const {
  if (out.empty()) return;
  const unsigned last = shape_.rank() - 1;
  const std::uint64_t row_bytes = shape_[last] * width_;
  const std::uint64_t kept_bytes = std::min(shape_[last], base_shape_[last]) * width_;
  // What the base does not have is zero bits.
  std::memset(out.data(), 0, out.size());
  Gather gather(*base_, out);
  for (std::uint64_t at = 0; at < out.size();) {
    const std::uint64_t row = (begin + at) / row_bytes;
    const std::uint64_t into = (begin + at) % row_bytes;
    const std::uint64_t length = std::min<std::uint64_t>(row_bytes - into, out.size() - at);
    const std::int64_t from = kept_bytes > into ? base_row(base_shape_, shape_, row) : -1;
    if (from >= 0) {
      gather.add({.from = static_cast<std::uint64_t>(from) * width_ + into,
                  .to = at,
                  .length = std::min(length, kept_bytes - into)});
    }
    at += length;
  }
  gather.flush();
}

}  // namespace thalia::state
