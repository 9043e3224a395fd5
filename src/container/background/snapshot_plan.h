// Borrowed payloads, to be copied one after the other into memory of the library's own.
#pragma once

#include <cstdint>
#include <vector>

#include "container/plan/file_plan.h"
#include "thalia/types.h"

namespace thalia::container {

/// The payloads stay as they are until copy() is back.
class SnapshotPlan {
 public:
  SnapshotPlan() = default;
  /// Payloads that the file aligns to pages are aligned to pages here too, so that a direct write
  /// takes them from here; the others to what any element type wants.
  explicit SnapshotPlan(const FilePlan& plan);

  /// One more payload, placed in the same way.
  void add(ByteSpan payload);

  std::uint64_t bytes() const noexcept { return bytes_; }

  /// Copies every payload on up to `threads` threads (0: one a core). `memory` is page-aligned and
  /// holds bytes().
  void copy(MutableByteSpan memory, unsigned threads) const;

  /// The copy of the payload that was added as the `index`-th.
  ByteSpan payload(std::size_t index, ByteSpan memory) const noexcept;
  /// From here on the plan borrows its payloads from `memory`.
  void adopt(FilePlan& plan, ByteSpan memory) const noexcept;

 private:
  struct Place {
    std::uint64_t offset;  ///< in the snapshot
    std::uint64_t length;
  };
  struct Piece : Place {
    const std::byte* bytes;
  };
  void begin_payload(std::uint64_t length);
  void add_piece(ByteSpan piece);
  void copy_range(MutableByteSpan memory, std::uint64_t begin, std::uint64_t end) const noexcept;

  std::vector<Piece> pieces_;  ///< by offset
  std::vector<Place> payloads_;
  std::uint64_t bytes_ = 0;
};

}  // namespace thalia::container
