// Eight codes of w bits are w bytes: codes are packed and unpacked eight at a time in one word,
// whatever w is, and each group of eight starts at a whole byte. The words are those of the host:
// like all of the library, this needs a little-endian one. No byte outside of the spans is touched;
// the ends are done with copies of the right length.
#include "codec/lossy/code_packing.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace thalia::codec {
namespace {

// Every second byte, every second pair of bytes, and the lower half of a word.
constexpr std::uint64_t kBytes = 0x00FF00FF00FF00FF;
constexpr std::uint64_t kPairs = 0x0000FFFF0000FFFF;
constexpr std::uint64_t kHalves = 0x00000000FFFFFFFF;

// Eight codes, one in each byte, to one run of bits: in three steps neighbours of 1, 2 and 4 codes
// are moved together.
std::uint64_t pack_eight(std::uint64_t codes, unsigned bits) noexcept {
  codes = (codes & kBytes) | ((codes >> 8 & kBytes) << bits);
  codes = (codes & kPairs) | ((codes >> 16 & kPairs) << 2 * bits);
  return (codes & kHalves) | ((codes >> 32) << 4 * bits);
}

// The inverse: the run is cut into halves, each again, and the parts moved 32, 16 and 8 bits apart.
// What is above the eighth code is masked out.
std::uint64_t unpack_eight(std::uint64_t packed, unsigned bits) noexcept {
  const std::uint64_t quads = (std::uint64_t{1} << 4 * bits) - 1;
  packed = (packed & quads) | ((packed >> 4 * bits & quads) << 32);
  const std::uint64_t pairs = ((std::uint64_t{1} << 2 * bits) - 1) * 0x0000000100000001;
  packed = (packed & pairs) | ((packed >> 2 * bits & pairs) << 16);
  const std::uint64_t ones = ((std::uint64_t{1} << bits) - 1) * 0x0001000100010001;
  return (packed & ones) | ((packed >> bits & ones) << 8);
}

}  // namespace

void pack_codes(unsigned bits, std::span<const std::uint8_t> codes, MutableByteSpan packed) {
  assert(bits >= 1 && bits <= 8 && packed.size() == packed_bytes(codes.size(), bits));
  std::byte* out = packed.data();
  std::size_t i = 0;
  // Storing a whole word is faster than storing w bytes; the next eight codes overwrite what is too
  // much, so there must be eight more.
  for (; i + 16 <= codes.size(); i += 8, out += bits) {
    std::uint64_t eight;
    std::memcpy(&eight, codes.data() + i, sizeof eight);
    eight = pack_eight(eight, bits);
    if (packed.data() + packed.size() - out >= 8) {
      std::memcpy(out, &eight, sizeof eight);
    } else {
      std::memcpy(out, &eight, bits);
    }
  }
  for (; i < codes.size(); i += 8, out += bits) {
    const std::size_t count = std::min<std::size_t>(8, codes.size() - i);
    std::uint64_t eight = 0;
    std::memcpy(&eight, codes.data() + i, count);
    eight = pack_eight(eight, bits);
    std::memcpy(out, &eight, packed_bytes(count, bits));
  }
}

void unpack_codes(unsigned bits, ByteSpan packed, std::span<std::uint8_t> codes) {
  assert(bits >= 1 && bits <= 8 && packed.size() == packed_bytes(codes.size(), bits));
  const std::byte* in = packed.data();
  const std::byte* const end = in + packed.size();
  std::size_t i = 0;
  for (; i + 8 <= codes.size() && end - in >= 8; i += 8, in += bits) {
    std::uint64_t eight;
    std::memcpy(&eight, in, sizeof eight);
    eight = unpack_eight(eight, bits);
    std::memcpy(codes.data() + i, &eight, sizeof eight);
  }
  for (; i < codes.size(); i += 8, in += bits) {
    const std::size_t count = std::min<std::size_t>(8, codes.size() - i);
    std::uint64_t eight = 0;
    std::memcpy(&eight, in, packed_bytes(count, bits));
    eight = unpack_eight(eight, bits);
    std::memcpy(codes.data() + i, &eight, count);
  }
}

}  // namespace thalia::codec
