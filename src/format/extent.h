// Extents, and sums of offsets and lengths that do not wrap: numbers from a file may be any.
#pragma once

#include <cstdint>
#include <optional>

namespace thalia::format {

struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// One past the extent's last byte; nullopt on overflow.
inline std::optional<std::uint64_t> extent_end(Extent extent) noexcept {
  std::uint64_t end;
  if (__builtin_add_overflow(extent.offset, extent.length, &end)) return std::nullopt;
  return end;
}

/// True if the extent lies within [begin, end).
inline bool lies_within(Extent extent, std::uint64_t begin, std::uint64_t end) noexcept {
  const auto last = extent_end(extent);
  return last && extent.offset >= begin && *last <= end;
}

/// `value` rounded up to a multiple of `alignment`, a power of two. The caller knows that it does
/// not overflow.
constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) noexcept {
  return (value + alignment - 1) & ~(alignment - 1);
}

}  // namespace thalia::format
