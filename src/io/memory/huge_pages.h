// Huge pages for large memory, which then takes fewer page faults.
#pragma once

#include <cstddef>

#include "thalia/types.h"

namespace thalia::io {

inline constexpr std::size_t kHugePage = 2 << 20;

/// At which memory of `size` bytes is to begin, so that huge pages can hold all of it; `least`
/// if it is smaller than one.
constexpr std::size_t huge_page_alignment(std::size_t size, std::size_t least) noexcept {
  return size < kHugePage ? least : kHugePage;
}

/// Asks for huge pages where whole ones lie in `memory`, before it is first written to. A wish: a
/// system without them gives ordinary ones.
void prefer_huge_pages(MutableByteSpan memory) noexcept;

}  // namespace thalia::io
