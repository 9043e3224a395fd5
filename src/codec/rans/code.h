// The frequencies of bytes that rANS codes with, and the tables made of them.
// docs/format/format.md, "plane_entropy".
#pragma once

#include <array>
#include <cstdint>

#include "codec/planes/byte_counts.h"
#include "codec/rans/kernels.h"
#include "thalia/types.h"

namespace thalia::codec {

/// The frequency of each byte, 0 for bytes that do not occur. They sum to kRansScale, and each is
/// less than that.
using RansFrequencies = std::array<std::uint16_t, 256>;

/// How often each byte occurs; in a long plane this is estimated from an eighth of it. No byte that
/// occurs gets 0. At most 2^31 bytes.
ByteCounts estimated_counts(ByteSpan plane, const RansKernels& kernels);

/// The frequencies for these counts, in which at least two bytes occur.
RansFrequencies rans_frequencies(const ByteCounts& counts);

/// The bits that the coded bytes take with these frequencies, without states and tables.
double coded_bits(const ByteCounts& counts, const RansFrequencies& frequencies);

void make_table(const RansFrequencies& frequencies, RansEncodeTable& table);
void make_table(const RansFrequencies& frequencies, RansDecodeTable& table);

}  // namespace thalia::codec
