// A base of another element type, converted as it is read: the first step of fitting
// (docs/format/deltas.md, "xor_base"). Element i lies at i times each width, so that a part of the
// result needs exactly one part of the base.
#include "state/delta/converted_base.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "codec/float/conversion.h"
#include "format/extent.h"
#include "state/delta/partwise_bytes.h"
#include "thalia/types.h"

namespace thalia::state {
namespace {

// A base's tensor in the shape of the tensor that it is the base of. docs/format/deltas.md,
// "xor_base".
//
// A base of another shape, in the shape of the result: the second step of fitting
// (docs/format/deltas.md, "xor_base"). Each row of the result is the beginning of a row of the
// base, or zeros, or both. Rows ascend on both sides, so that rows that lie near each other in the
// base are read in one go.

/// A dense tensor of another shape: each element is that of the base at the same index, or zero
/// if the base has no such index. Only what a part is made of is read from the base.
class FittedBase final : public PartwiseBytes {
 public:
  /// Ranks are equal, and not 0. @param width bytes of an element.
  FittedBase(std::shared_ptr<const PartwiseBytes> base, const Shape& base_shape, const Shape& shape,
             unsigned width);

  std::uint64_t size() const noexcept override { return size_; }
  void read(std::uint64_t begin, MutableByteSpan out) const override;

 private:
  struct Piece;
  class Gather;

  std::shared_ptr<const PartwiseBytes> base_;
  Shape base_shape_;
  Shape shape_;
  unsigned width_;
  std::uint64_t size_;
};

// Bytes of the base that are read at once, with what lies between the rows.
constexpr std::uint64_t kSpan = 2 << 20;
// Sources are read at multiples of 16 bytes.
constexpr std::uint64_t kPieceAlignment = 16;

// Where a row, which is one run of the last dimension, begins in the base, in elements; -1 if
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

struct FittedBase::Piece {
  std::uint64_t from;  ///< in the base
  std::uint64_t to;    ///< in what is asked for
  std::uint64_t length;
};

// Collects neighbouring pieces and reads them together: a compressed base decodes a whole chunk for
// each.
class FittedBase::Gather {
 public:
  Gather(const PartwiseBytes& base, MutableByteSpan out) : base_(base), out_(out) {}

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
  const PartwiseBytes& base_;
  MutableByteSpan out_;
  std::vector<Piece> pieces_;
  std::vector<std::byte> buffer_;
};

FittedBase::FittedBase(std::shared_ptr<const PartwiseBytes> base, const Shape& base_shape,
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

// Sources are read at multiples of 16 bytes, which a part of another width need not begin at.
constexpr std::uint64_t kReadAlignment = 16;

unsigned width(DType dtype) {
  return dtype_bits(dtype) / 8;
}

}  // namespace

ConvertedBase::ConvertedBase(std::shared_ptr<const PartwiseBytes> base, DType from, DType to)
    : base_(std::move(base)),
      from_(from),
      to_(to),
      size_(base_->size() / width(from) * width(to)) {}

void ConvertedBase::read(std::uint64_t begin, MutableByteSpan out) const {
  const std::uint64_t from = begin / width(to_) * width(from_);
  const std::uint64_t length = out.size() / width(to_) * width(from_);
  const std::uint64_t aligned = from / kReadAlignment * kReadAlignment;
  const std::uint64_t end =
      std::min(format::align_up(from + length, kReadAlignment), base_->size());
  std::vector<std::byte> buffer;
  const ByteSpan found = base_->part(aligned, end - aligned, buffer);
  codec::convert_elements(from_, to_, found.subspan(from - aligned, length), out);
}

bool can_be_fitted(const TensorLayout& base, const TensorLayout& result) noexcept {
  if (base == result) return true;
  const bool same_kind = base.dtype == result.dtype ||
                         (codec::is_convertible(base.dtype) && codec::is_convertible(result.dtype));
  return base.encoding == Encoding::dense && result.encoding == Encoding::dense && same_kind &&
         base.shape.rank() == result.shape.rank() &&
         (base.shape.rank() > 0 || base.dtype != result.dtype) && !dtype_is_packed(base.dtype);
}

std::shared_ptr<const PartwiseBytes> fitted(std::shared_ptr<const PartwiseBytes> base,
                                            const TensorLayout& own, const TensorLayout& result) {
  if (own.dtype != result.dtype)
    base = std::make_shared<ConvertedBase>(std::move(base), own.dtype, result.dtype);
  // In the order of the format; FittedBase then works in the width of the result.
  if (own.shape != result.shape)
    base =
        std::make_shared<FittedBase>(std::move(base), own.shape, result.shape, width(result.dtype));
  return base;
}

}  // namespace thalia::state
