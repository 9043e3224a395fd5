// How large the blocks of a file's tree are where nobody chose, and the gaps that keep damage to a
// payload away from what has no checksum of its own. docs/format/format.md, "Block tree".
#pragma once

#include <cstdint>
#include <optional>

#include "format/constants.h"
#include "format/header.h"

namespace thalia::container {

/// Every value that block_log2_for() may return, smallest first.
inline constexpr unsigned kBlockLog2s[] = {12, 14, 16, format::kDefaultBlockLog2};

/// The block size, as a power of two, that suits a file whose blocks cover so many bytes.
unsigned block_log2_for(std::uint64_t covered) noexcept;

/// The block size that a caller chose for a file. nullopt if it is the one that the size of the
/// file suggests: such blocks may become larger as the file grows.
std::optional<unsigned> chosen_block_log2(const format::Header& header) noexcept;

/// Begins each section on a block of its own, so that damage in one leaves the other verifiable.
/// Gaps take at most 16 KiB, or a sixteenth of the file as far as its size is known. Blocks of 1
/// MiB are too large for gaps.
class BlockGaps {
 public:
  BlockGaps() = default;  ///< none
  /// @param least_bytes that the file will have at least.
  explicit BlockGaps(std::uint64_t least_bytes) noexcept : on_(true), least_bytes_(least_bytes) {}

  /// The place for a section that could begin at `at`: the next block, or `at` itself where the gap
  /// would cost too much.
  std::uint64_t behind(std::uint64_t at) noexcept;

 private:
  bool on_ = false;
  std::uint64_t least_bytes_ = 0;
  std::uint64_t taken_ = 0;
};

/// Whether nothing but alignment or such a gap lies between `at` and a section after it.
bool is_gap(std::uint64_t at, std::uint64_t section) noexcept;

}  // namespace thalia::container
