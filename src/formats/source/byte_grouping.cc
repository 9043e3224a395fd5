// Grouped bytes put all bytes of equal significance next to each other, which is what makes a codec
// find repetitions in numbers. A part of the grouped form touches the tensor with a stride. Parts
// do not overlap in the tensor either, so several threads may scatter into one tensor.
#include "formats/source/byte_grouping.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace thalia::formats {
namespace {

// Calls run(first, step, in_part, count) for the runs of equal byte number that a part consists of:
// byte in_part + i of the part is byte first + i * step of the tensor.
template <typename Run>
void for_each_run(std::uint64_t tensor_bytes, unsigned width, std::uint64_t begin,
                  std::uint64_t length, const Run& run) {
  if (width < 2) {
    run(begin, std::size_t{1}, std::size_t{0}, length);
    return;
  }
  const std::uint64_t plane = tensor_bytes / width;
  for (std::uint64_t done = 0; done < length;) {
    const std::uint64_t at = begin + done;
    const std::uint64_t element = at % plane;
    const std::uint64_t count = std::min(plane - element, length - done);
    run(element * width + at / plane, std::size_t{width}, done, count);
    done += count;
  }
}

// A step that is known at compile time lets the compiler use vector instructions.
template <typename Call>
void with_step(std::size_t step, const Call& call) {
  switch (step) {
    case 2:
      return call(std::integral_constant<std::size_t, 2>());
    case 4:
      return call(std::integral_constant<std::size_t, 4>());
    case 8:
      return call(std::integral_constant<std::size_t, 8>());
    default:
      return call(std::integral_constant<std::size_t, 1>());
  }
}

}  // namespace

void gather_planes(ByteSpan raw, ByteSpan base, unsigned width, std::uint64_t begin,
                   MutableByteSpan out) {
  for_each_run(
      raw.size(), width, begin, out.size(),
      [&](std::uint64_t first, std::size_t step, std::uint64_t in_part, std::uint64_t count) {
        std::byte* const to = out.data() + in_part;
        const std::byte* const from = raw.data() + first;
        with_step(step, [&](auto fixed) {
          if (base.empty()) {
            for (std::size_t i = 0; i < count; ++i) to[i] = from[i * fixed()];
            return;
          }
          const std::byte* const other = base.data() + first;
          for (std::size_t i = 0; i < count; ++i) to[i] = from[i * fixed()] ^ other[i * fixed()];
        });
      });
}

void scatter_planes(ByteSpan part, unsigned width, std::uint64_t begin, bool delta,
                    MutableByteSpan raw) {
  for_each_run(
      raw.size(), width, begin, part.size(),
      [&](std::uint64_t first, std::size_t step, std::uint64_t in_part, std::uint64_t count) {
        const std::byte* const from = part.data() + in_part;
        std::byte* const to = raw.data() + first;
        with_step(step, [&](auto fixed) {
          if (delta) {
            for (std::size_t i = 0; i < count; ++i) to[i * fixed()] ^= from[i];
          } else {
            for (std::size_t i = 0; i < count; ++i) to[i * fixed()] = from[i];
          }
        });
      });
}

}  // namespace thalia::formats
