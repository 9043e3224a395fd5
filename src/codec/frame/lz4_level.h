// What a level of lz4 means, whichever version of liblz4 it is: from 1.10 on, the library's own
// dense search begins at level 2.
#pragma once

namespace thalia::codec {

/// Levels below are the fast search, which is one, and those from here on the dense one.
inline constexpr int kFirstDenseLz4Level = 3;

/// The level to give to liblz4.
constexpr int lz4_level(int level) noexcept {
  return level < kFirstDenseLz4Level ? 1 : level;
}

}  // namespace thalia::codec
