#include "formats/source/swap_bytes.h"

#include <cstdint>
#include <cstring>

namespace thalia::formats {
namespace {

template <typename Number, typename Swap>
void swap_each(MutableByteSpan numbers, const Swap& swap) noexcept {
  for (std::size_t at = 0; at < numbers.size(); at += sizeof(Number)) {
    Number number;
    std::memcpy(&number, numbers.data() + at, sizeof number);
    number = swap(number);
    std::memcpy(numbers.data() + at, &number, sizeof number);
  }
}

}  // namespace

void swap_bytes(DType dtype, MutableByteSpan elements) noexcept {
  // A complex element is aligned as the numbers that it has.
  switch (dtype_alignment(dtype)) {
    case 2:
      return swap_each<std::uint16_t>(elements, [](auto n) { return __builtin_bswap16(n); });
    case 4:
      return swap_each<std::uint32_t>(elements, [](auto n) { return __builtin_bswap32(n); });
    case 8:
      return swap_each<std::uint64_t>(elements, [](auto n) { return __builtin_bswap64(n); });
    default:
      return;
  }
}

}  // namespace thalia::formats
