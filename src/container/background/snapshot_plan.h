// A draft's borrowed payloads, to be copied one behind the other into memory of the library's own.
#pragma once

#include <cstdint>
#include <vector>

#include "container/write/draft.h"
#include "thalia/bytes.h"

namespace thalia::container {

/// Immutable. Made from a draft that is not changed before adopt().
class SnapshotPlan {
 public:
  /// Payloads that the file aligns to pages are aligned to pages here too, so that a direct write
  /// takes them from here; the others to what any element type wants.
  explicit SnapshotPlan(const Draft& draft);

  std::uint64_t bytes() const noexcept { return bytes_; }

  /// Copies every payload on up to `threads` threads (0: one a core). `memory` is page-aligned and
  /// holds bytes().
  void copy(MutableByteSpan memory, unsigned threads) const;

  /// From here on the draft borrows its payloads from `memory`.
  void adopt(Draft& draft, ByteSpan memory) const noexcept;

 private:
  struct Piece {
    const std::byte* bytes;
    std::uint64_t offset;  ///< in the snapshot
    std::uint64_t length;
  };
  void copy_range(MutableByteSpan memory, std::uint64_t begin, std::uint64_t end) const noexcept;

  std::vector<Piece> pieces_;           ///< by offset
  std::vector<std::uint64_t> offsets_;  ///< by tensor
  std::uint64_t bytes_ = 0;
};

}  // namespace thalia::container
