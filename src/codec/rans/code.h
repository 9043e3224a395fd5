// Frequencies of bytes as rANS takes them, and the tables made of them. docs/format.md,
// "plane_entropy".
#pragma once

#include <array>
#include <cstdint>

#include "codec/planes/byte_counts.h"
#include "codec/rans/kernels.h"
#include "thalia/bytes.h"

namespace thalia::codec {

/// Of each byte, 0 for those that do not occur. They sum to kRansScale, and each is less than that.
using RansFrequencies = std::array<std::uint16_t, 256>;

/// How often each byte occurs, in a long plane estimated from a quarter of it; no byte that occurs
/// has 0. At most 2^31 bytes.
ByteCounts estimated_counts(ByteSpan plane, const RansKernels& kernels);

/// At least two bytes occur.
RansFrequencies rans_frequencies(const ByteCounts& counts);

/// What coding takes with these frequencies, states and tables left out.
double coded_bits(const ByteCounts& counts, const RansFrequencies& frequencies);

void make_table(const RansFrequencies& frequencies, RansEncodeTable& table);
void make_table(const RansFrequencies& frequencies, RansDecodeTable& table);

}  // namespace thalia::codec
