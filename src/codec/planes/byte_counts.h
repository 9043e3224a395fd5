// How often each byte occurs, and what that says about how few bits they could take.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "thalia/types.h"

namespace thalia::codec {

using ByteCounts = std::array<std::uint32_t, 256>;

/// How often each byte occurs, of at most 2^32 - 1 bytes. In each `step` bytes only the first `run`
/// are counted; by default all are.
ByteCounts count_bytes(ByteSpan bytes, std::size_t run = SIZE_MAX, std::size_t step = SIZE_MAX);

std::uint64_t sum_of(const ByteCounts& counts);
std::size_t distinct_bytes(const ByteCounts& counts);

/// The entropy of all counted bytes together, in bits. As a sample is known to show too little of
/// it, the missing part is added (Miller and Madow). There must be at least one byte.
double entropy_bits(const ByteCounts& counts);

}  // namespace thalia::codec
