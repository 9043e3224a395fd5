#include "state/tensor/bit_runs.h"

#include <cstring>

namespace thalia::state {

void copy_bits(ByteSpan from, std::uint64_t from_bit, MutableByteSpan to, std::uint64_t to_bit,
               std::uint64_t count) {
  if (count == 0) return;
  // Whole bytes at once where both sides begin at one. Otherwise, and for the rest, bit by bit:
  // only packed types come here, and they are small.
  if (from_bit % 8 == 0 && to_bit % 8 == 0) {
    std::memcpy(to.data() + to_bit / 8, from.data() + from_bit / 8, count / 8);
    const std::uint64_t done = count / 8 * 8;
    from_bit += done;
    to_bit += done;
    count -= done;
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t source = from_bit + i;
    const std::uint64_t target = to_bit + i;
    const std::byte mask = std::byte{1} << (target % 8);
    const bool is_set = ((from[source / 8] >> (source % 8)) & std::byte{1}) != std::byte{0};
    std::byte& byte = to[target / 8];
    byte = is_set ? byte | mask : byte & ~mask;
  }
}

}  // namespace thalia::state
