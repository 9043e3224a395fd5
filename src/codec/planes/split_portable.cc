// The kernels one word at a time: for processors without AVX2, for what is left after the last
// whole vector, and what the tests compare the others with.
#include <bit>
#include <type_traits>

#include "codec/planes/split_kernels.h"
#include "format/little_endian.h"

namespace thalia::codec {
namespace {

template <std::size_t kWidth>
using Word = std::conditional_t<kWidth == 2, std::uint16_t,
                                std::conditional_t<kWidth == 4, std::uint32_t, std::uint64_t>>;

template <std::size_t kWidth, bool kIsRotated>
void split(const std::byte* words, std::size_t count, std::byte* const* planes) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    format::LittleEndian<Word<kWidth>> stored;
    std::memcpy(&stored, words + i * kWidth, kWidth);
    Word<kWidth> word = stored;
    if constexpr (kIsRotated) word = std::rotl(word, 1);
    for (std::size_t k = 0; k < kWidth; ++k)
      planes[k][i] = static_cast<std::byte>(word >> (8 * k) & 0xff);
  }
}

template <std::size_t kWidth, bool kIsRotated>
void join(const std::byte* const* planes, std::size_t count, std::byte* words) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t bits = 0;
    for (std::size_t k = 0; k < kWidth; ++k)
      bits |= std::to_integer<std::uint64_t>(planes[k][i]) << (8 * k);
    auto word = static_cast<Word<kWidth>>(bits);
    if constexpr (kIsRotated) word = std::rotr(word, 1);
    const format::LittleEndian<Word<kWidth>> stored = word;
    std::memcpy(words + i * kWidth, &stored, kWidth);
  }
}

}  // namespace

const PlaneKernels kPortablePlanes = {
    .plain = {{split<2, false>, join<2, false>},
              {split<4, false>, join<4, false>},
              {split<8, false>, join<8, false>}},
    .rotated = {{split<2, true>, join<2, true>},
                {split<4, true>, join<4, true>},
                {split<8, true>, join<8, true>}},
};

}  // namespace thalia::codec
