// Codes that an element type does not allow. Views hand elements out as they lie, and only
// as<bool>() looks at them, so it is verify that finds these.
#include "container/verify/elements.h"

#include <algorithm>

#include "base/fail.h"

namespace thalia::container {
namespace {

// Four ternary elements in a byte, two bits each. The illegal code is 10: higher bit set, lower bit
// clear.
bool has_minus_two(std::byte four) {
  return ((four >> 1) & ~four & std::byte{0x55}) != std::byte{0};
}

}  // namespace

bool has_illegal_codes(DType dtype) noexcept {
  return dtype == DType::boolean || dtype == DType::ternary;
}

void check_elements(DType dtype, std::optional<std::uint64_t> offset, ByteSpan elements) {
  if (!has_illegal_codes(dtype)) return;
  const bool boolean = dtype == DType::boolean;
  const auto bad = std::find_if(elements.begin(), elements.end(), [&](std::byte b) {
    return boolean ? b > std::byte{1} : has_minus_two(b);
  });
  if (bad == elements.end()) return;
  throw FormatError(ErrorCode::bad_value, {},
                    {.section = "payload",
                     .field = "elements",
                     .offset = offset,
                     .value = fmt::format("byte {:#04x} of {} elements",
                                          std::to_integer<unsigned>(*bad), dtype_name(dtype)),
                     .bound = boolean ? "0 or 1" : "codes 00, 01 and 11"});
}

void check_unused_bits(const format::TensorEntry& entry, ByteSpan tail) {
  const DType dtype = entry.dtype;
  if (!dtype_is_packed(dtype) || tail.empty()) return;
  // Only the number modulo 8 is needed, which survives an overflow.
  std::uint64_t elements = 1;
  for (unsigned d = 0; d < entry.ndim; ++d) elements *= entry.shape[d];
  const unsigned used = static_cast<unsigned>(elements % 8 * dtype_bits(dtype) % 8);
  const auto last = std::to_integer<unsigned>(tail.back());
  if (used == 0 || last >> used == 0) return;
  fail_field(ErrorCode::bad_value, "payload", "elements",
             entry.stored_offset + entry.stored_length - 1,
             fmt::format("{:#04x} in the last byte", last),
             fmt::format("{} bits in use, the others zero", used));
}

}  // namespace thalia::container
