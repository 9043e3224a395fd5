// CRC-32 (IEEE 802.3, reflected, as zlib computes it).
#pragma once

#include <cstdint>

#include "thalia/types.h"

namespace thalia::integrity {

/// CRC-32 of `bytes` appended to data whose CRC-32 is `crc`; 0 is the CRC-32 of nothing.
std::uint32_t crc32(ByteSpan bytes, std::uint32_t crc = 0) noexcept;
/// CRC-32 of what is all there, on up to `threads` threads; 0: one a core.
std::uint32_t crc32_of_all(ByteSpan bytes, unsigned threads);
/// The CRC-32 of A followed by B, from those of A and B and the length of B in bytes.
std::uint32_t crc32_combine(std::uint32_t crc_a, std::uint32_t crc_b,
                            std::uint64_t length_b) noexcept;

}  // namespace thalia::integrity
