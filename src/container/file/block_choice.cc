#include "container/file/block_choice.h"

#include <algorithm>
#include <iterator>

#include "format/extent.h"

namespace thalia::container {
namespace {

// The smaller blocks, while 256 of them are enough: a table of 4 KiB.
constexpr unsigned kMostLeavesLog2 = 8;

// What gaps may take of a file of any size, and beyond it, one byte of so many.
constexpr std::uint64_t kFreeGaps = 16 << 10;
constexpr std::uint64_t kGapShare = 16;

}  // namespace

unsigned block_log2_for(std::uint64_t covered) noexcept {
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
  const std::uint64_t known = std::max(at, least_bytes_);
  const unsigned log2 = block_log2_for(known);
  if (!on_ || log2 == format::kDefaultBlockLog2) return at;
  const std::uint64_t section = format::align_up(at, std::uint64_t{1} << log2);
  if (taken_ + (section - at) > std::max(kFreeGaps, known / kGapShare)) return at;
  taken_ += section - at;
  return section;
}

bool is_gap(std::uint64_t at, std::uint64_t section) noexcept {
  return section == format::align_up(at, format::kAlignment) ||
         std::any_of(std::begin(kBlockLog2s), std::end(kBlockLog2s) - 1, [&](unsigned log2) {
           return section == format::align_up(at, std::uint64_t{1} << log2);
         });
}

}  // namespace thalia::container
