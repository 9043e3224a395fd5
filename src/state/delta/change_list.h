// The elements of a tensor that moved, as sparse_delta stores them. docs/format/deltas.md,
// "sparse_delta".
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "integrity/content_hash.h"
#include "state/delta/change.h"
#include "thalia/types.h"

namespace thalia::state {

/// The changed elements of a run of elements.
struct ListPart {
  std::vector<std::uint16_t> positions;  ///< numbers in their blocks
  std::vector<std::byte> values;
};

/// Adds the elements of a block whose bits differ; `base` and `now` begin where the block does, and
/// are one block at most. @return how many.
std::uint64_t list_block(ByteSpan base, ByteSpan now, unsigned width, ListPart& out);
/// As list_block(), for any number of blocks.
void list_changes(ByteSpan base, ByteSpan now, unsigned width, ListPart& out);

/// A list that is counted in one pass over a change. It is written in further passes if it is too
/// large to be kept. Borrows the change.
class ChangeList {
 public:
  /// Passes over everything, on as many threads as the options say. @param most bytes of entries
  /// from which on the list is not wanted; 0: only the digest is. @param kept bytes of them that
  /// may stay in memory. @param with_base whether base_hash() is asked for.
  /// @throws CancelledError.
  ChangeList(const DeltaChange& change, unsigned width, std::uint64_t most, std::uint64_t kept,
             bool with_base);

  /// The digest of what comes out.
  const integrity::ContentDigest& digest() const noexcept { return digest_; }
  /// The content hash of the base as it was read.
  const Digest128& base_hash() const noexcept { return base_hash_; }
  /// False if the entries reached the limit.
  bool is_complete() const noexcept { return complete_; }
  std::uint64_t count() const noexcept { return count_; }
  std::uint64_t entry_bytes() const noexcept { return count_ * (2 + width_); }

  /// The arrays of a complete list.
  std::vector<std::uint64_t> pointers() const;
  using Write = std::function<void(ByteSpan)>;
  void write_positions(const Write& write) const;
  void write_values(const Write& write) const;

 private:
  template <typename Take>
  void for_each_part(Take take) const;

  const DeltaChange& change_;
  unsigned width_;
  integrity::ContentDigest digest_;
  Digest128 base_hash_;
  bool complete_ = false;
  std::uint64_t count_ = 0;
  std::vector<std::uint32_t> counts_;  ///< by block
  std::vector<ListPart> parts_;        ///< by piece; none if it is not kept
};

}  // namespace thalia::state
