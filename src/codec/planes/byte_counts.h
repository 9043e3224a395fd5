// How often each byte occurs, and what that says about how few bits they could take.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "thalia/bytes.h"

namespace thalia::codec {

using ByteCounts = std::array<std::uint32_t, 256>;

/// Of at most 2^32 - 1 bytes. Of each `step` bytes the first `run` are counted; the whole, unless
/// said otherwise.
ByteCounts count_bytes(ByteSpan bytes, std::size_t run = SIZE_MAX, std::size_t step = SIZE_MAX);

std::uint64_t sum_of(const ByteCounts& counts);
std::size_t distinct_bytes(const ByteCounts& counts);

/// The entropy of all bytes in bits, with what a sample of them is known to lack of it (Miller and
/// Madow). At least one byte.
double entropy_bits(const ByteCounts& counts);

}  // namespace thalia::codec
