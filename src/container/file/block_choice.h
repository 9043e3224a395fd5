// How large the blocks of a file's tree are where nobody chose, and the gaps that keep damage to a
// payload away from what has no checksum of its own. docs/format.md, "Block tree".
#pragma once

#include <cstdint>
#include <optional>

#include "format/constants.h"
#include "format/header.h"

namespace thalia::container {

/// All that block_log2_for() may say.
inline constexpr unsigned kBlockLog2s[] = {12, 14, 16, format::kDefaultBlockLog2};

/// For a file whose blocks cover so many bytes.
unsigned block_log2_for(std::uint64_t covered) noexcept;

/// What somebody chose for a file; nullopt where its blocks are those that its size asks for, and
/// may grow with it.
std::optional<unsigned> chosen_block_log2(const format::Header& header) noexcept;

/// Begins sections on blocks of their own, as far as that costs little: 16 KiB, or a sixteenth of
/// the file as far as its size is known. Blocks of 1 MiB are too large for gaps.
class BlockGaps {
 public:
  BlockGaps() = default;  ///< none
  /// @param least_bytes that the file will have at least.
  explicit BlockGaps(std::uint64_t least_bytes) noexcept : on_(true), least_bytes_(least_bytes) {}

  /// Where a section is to begin that could begin at `at`.
  std::uint64_t behind(std::uint64_t at) noexcept;

 private:
  bool on_ = false;
  std::uint64_t least_bytes_ = 0;
  std::uint64_t taken_ = 0;
};

/// Whether nothing but alignment or such a gap lies between `at` and a section behind it.
bool is_gap(std::uint64_t at, std::uint64_t section) noexcept;

}  // namespace thalia::container
