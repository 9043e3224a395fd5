// Runs of elements that need not be whole bytes.
#pragma once

#include <cstdint>

#include "thalia/types.h"

namespace thalia::state {

/// Copies `count` bits from bit `from_bit` of `from` to bit `to_bit` of `to`, bits counted from the
/// lowest of the first byte. Other bits of `to` stay.
void copy_bits(ByteSpan from, std::uint64_t from_bit, MutableByteSpan to, std::uint64_t to_bit,
               std::uint64_t count);

}  // namespace thalia::state
