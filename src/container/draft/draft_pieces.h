// The bytes of a payload that somebody else holds.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "thalia/types.h"

namespace thalia::container {

/// Runs of borrowed bytes, one behind the other, none of them empty. Most payloads are one run,
/// which takes no memory of its own.
class DraftPieces {
 public:
  DraftPieces() = default;
  DraftPieces(ByteSpan piece) : one_(piece) {}
  DraftPieces(std::vector<ByteSpan> pieces) : many_(std::move(pieces)) {
    std::erase_if(many_, [](ByteSpan piece) { return piece.empty(); });
  }

  // A range, which a span of pieces is made from.
  auto begin() const noexcept { return all().begin(); }
  auto end() const noexcept { return all().end(); }
  std::size_t size() const noexcept { return all().size(); }
  bool empty() const noexcept { return all().empty(); }
  const ByteSpan& front() const noexcept { return all().front(); }

 private:
  std::span<const ByteSpan> all() const noexcept {
    if (!many_.empty()) return many_;
    return {&one_, one_.empty() ? 0u : 1u};
  }

  ByteSpan one_;
  std::vector<ByteSpan> many_;  ///< where there are more, or were
};

}  // namespace thalia::container
