// The kernels of packed_exponents in plain integers, 8 bytes at a time: for processors without
// AVX2, and what the tests compare the others with.
#include "codec/exponents/kernels.h"
#include "format/little_endian.h"

namespace thalia::codec {
namespace {

using format::le64;

constexpr std::uint64_t kOnes = 0x0101010101010101;

std::uint64_t load(const std::byte* at) noexcept {
  le64 word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}
void store(std::byte* at, std::uint64_t value) noexcept {
  const le64 word = value;
  std::memcpy(at, &word, sizeof(word));
}

// Bit j of each of 64 bytes. The product adds up copies of eight single bits at distances of 7, so
// that the bit of byte i arrives at bit 56 + i; no two copies meet, so nothing is carried.
std::uint64_t bit_plane(const std::byte* bytes, unsigned j) noexcept {
  std::uint64_t plane = 0;
  for (unsigned i = 0; i < kGroup; i += 8)
    plane |= ((load(bytes + i) >> j & kOnes) * 0x0102040810204080 >> 56) << i;
  return plane;
}

// Sets bit j of byte i where bit i of the plane is set. The plane's byte is copied to all eight
// bytes, and each keeps its own bit, wherever that is. Adding 0x7f moves any such bit to the byte's
// highest, without a carry to the next.
void add_plane(std::uint64_t plane, unsigned j, std::byte* bytes) noexcept {
  for (unsigned i = 0; i < kGroup; i += 8) {
    const std::uint64_t selected = (plane >> i & 0xff) * kOnes & 0x8040201008040201;
    const std::uint64_t bits = (selected + 0x7f * kOnes) >> 7 & kOnes;
    store(bytes + i, load(bytes + i) | bits << j);
  }
}

std::byte* pack(const ExponentLookup& lookup, const std::byte* bytes, std::size_t groups,
                std::byte* codes, std::byte* escapes) noexcept {
  const unsigned escape = lookup.code.escape();
  const std::byte mask{lookup.code.symbol_mask()};
  for (; groups > 0; --groups, bytes += kGroup) {
    std::byte found[kGroup];
    for (std::size_t i = 0; i < kGroup; ++i) {
      const std::uint8_t code = lookup.code_of[std::to_integer<std::uint8_t>(bytes[i])];
      found[i] = std::byte{code};
      if (code == escape) *escapes++ = bytes[i] & mask;
    }
    for (unsigned j = 0; j < lookup.code.code_bits; ++j, codes += 8)
      store(codes, bit_plane(found, j));
  }
  return escapes;
}

const std::byte* unpack(const ExponentCode& code, const std::byte* codes, std::size_t groups,
                        const std::byte* escapes, const std::byte* end, std::byte* bytes) noexcept {
  const unsigned escape = code.escape();
  for (; groups > 0; --groups, bytes += kGroup) {
    std::memset(bytes, 0, kGroup);
    for (unsigned j = 0; j < code.code_bits; ++j, codes += 8) add_plane(load(codes), j, bytes);
    for (std::size_t i = 0; i < kGroup; ++i) {
      const auto found = std::to_integer<unsigned>(bytes[i]);
      bytes[i] = std::byte{code.symbols[found]};
      if (found != escape) continue;
      if (escapes == end) return nullptr;
      bytes[i] = *escapes++;
    }
  }
  return escapes;
}

void pack_low(unsigned bits, const std::byte* bytes, std::size_t groups,
              std::byte* planes) noexcept {
  for (; groups > 0; --groups, bytes += kGroup)
    for (unsigned j = 0; j < bits; ++j, planes += 8) store(planes, bit_plane(bytes, j));
}

void add_low(unsigned bits, const std::byte* planes, std::size_t groups,
             std::byte* bytes) noexcept {
  for (; groups > 0; --groups, bytes += kGroup)
    for (unsigned j = 0; j < bits; ++j, planes += 8) add_plane(load(planes), j, bytes);
}

}  // namespace

const ExponentKernels kPortableExponents = {
    .pack = pack, .unpack = unpack, .pack_low = pack_low, .add_low = add_low};

}  // namespace thalia::codec
