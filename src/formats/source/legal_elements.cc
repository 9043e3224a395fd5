#include "formats/source/legal_elements.h"

#include <algorithm>

#include "container/verify/elements.h"
#include "format/payload.h"

namespace thalia::formats {

LegalElements::LegalElements(const TensorLayout& layout) noexcept : dtype_(layout.dtype) {
  if (!container::has_illegal_codes(dtype_)) return;
  if (layout.encoding == Encoding::dense) {
    end_ = format::payload_length(layout).value_or(0);
  } else if (is_sparse(layout.encoding)) {
    const auto parts = format::sparse_parts(layout);
    if (!parts) return;
    begin_ = parts->values.offset;
    end_ = begin_ + parts->values.length;
  }
}

void LegalElements::pass(ByteSpan piece) {
  const std::uint64_t begin = std::max(at_, begin_);
  const std::uint64_t end = std::min(at_ + piece.size(), end_);
  if (begin < end)
    container::check_elements(dtype_, std::nullopt, piece.subspan(begin - at_, end - begin));
  at_ += piece.size();
}

}  // namespace thalia::formats
