// A payload that is borrowed in pieces, seen as one range of bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "thalia/types.h"

namespace thalia::container {

/// Calls `visit` with the parts of the pieces that make up [begin, end) of them joined, in order.
template <typename Visit>
void for_each_part(std::span<const ByteSpan> pieces, std::uint64_t begin, std::uint64_t end,
                   Visit visit) {
  std::uint64_t at = 0;
  for (const ByteSpan piece : pieces) {
    const std::uint64_t from = std::max(begin, at);
    const std::uint64_t to = std::min<std::uint64_t>(end, at + piece.size());
    if (from < to) visit(piece.subspan(from - at, to - from));
    at += piece.size();
  }
}

}  // namespace thalia::container
