// The size of blocks is a trade. Damage to one byte makes its whole block unverifiable, so blocks
// should be small; but each adds a leaf to the table, and a section on a block of its own leaves a
// gap before it. What lays out a file and what looks for dead bytes in one have to know
// the same sizes, so all of them are chosen here.
#include "container/file/block_choice.h"

#include <algorithm>
#include <iterator>

#include "format/extent.h"

namespace thalia::container {
namespace {

// Smaller blocks are used while 256 of them suffice: with leaves of 16 bytes that is a table of 4
// KiB, one page.
constexpr unsigned kMostLeavesLog2 = 8;

// Gaps may take this much of any file, or one byte in kGapShare of a larger one.
constexpr std::uint64_t kFreeGaps = 16 << 10;
constexpr std::uint64_t kGapShare = 16;

}  // namespace

unsigned block_log2_for(std::uint64_t covered) noexcept {
  // The last size has no upper limit: it is what find_if() leaves if none of the others fits.
  const auto* const found =
      std::find_if(std::begin(kBlockLog2s), std::end(kBlockLog2s) - 1,
                   [&](unsigned log2) { return covered <= 1ull << (log2 + kMostLeavesLog2); });
  return *found;
}

std::optional<unsigned> chosen_block_log2(const format::Header& header) noexcept {
  if (header.integrity_block_log2 == block_log2_for(header.integrity_offset)) return std::nullopt;
  return header.integrity_block_log2;
}

std::uint64_t BlockGaps::behind(std::uint64_t at) noexcept {
  // While a file is laid out its size is not known. What lies before the section is a lower
  // limit, so gaps only ever come out too few.
  const std::uint64_t known = std::max(at, least_bytes_);
  const unsigned log2 = block_log2_for(known);
  if (!on_ || log2 == format::kDefaultBlockLog2) return at;
  const std::uint64_t section = format::align_up(at, std::uint64_t{1} << log2);
  if (taken_ + (section - at) > std::max(kFreeGaps, known / kGapShare)) return at;
  taken_ += section - at;
  return section;
}

bool is_gap(std::uint64_t at, std::uint64_t section) noexcept {
  // The file does not record which block size a gap was made for, so each of the small ones counts.
  return section == format::align_up(at, format::kAlignment) ||
         std::any_of(std::begin(kBlockLog2s), std::end(kBlockLog2s) - 1, [&](unsigned log2) {
           return section == format::align_up(at, std::uint64_t{1} << log2);
         });
}

}  // namespace thalia::container
