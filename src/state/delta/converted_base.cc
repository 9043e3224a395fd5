// A base of another element type, converted as it is read: the first step of fitting
// (docs/format/deltas.md, "xor_base"). Element i lies at i times each width, so that a part of the
// result needs exactly one part of the base.

#include "state/delta/converted_base.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "codec/float/conversion.h"
#include "format/extent.h"
#include "state/delta/fitted_base.h"

namespace thalia::state {
namespace {

// Sources are read at multiples of 16 bytes, which a part of another width need not begin at.
constexpr std::uint64_t kReadAlignment = 16;

unsigned width(DType dtype) {
  return dtype_bits(dtype) / 8;
}

}  // namespace

ConvertedBase::ConvertedBase(std::shared_ptr<const ByteSource> base, DType from, DType to)
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

std::shared_ptr<const ByteSource> fitted(std::shared_ptr<const ByteSource> base,
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
