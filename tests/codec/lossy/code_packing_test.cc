#include "codec/lossy/code_packing.h"

#include <vector>

#include "boost_test.h"
#include "support/bytes.h"

using namespace thalia;
using codec::pack_codes;
using codec::packed_bytes;
using codec::unpack_codes;

BOOST_AUTO_TEST_SUITE(code_packing)

namespace {

std::vector<std::uint8_t> random_codes(std::size_t count, unsigned bits) {
  std::vector<std::uint8_t> codes(count);
  const auto bytes = test::random_bytes(count, bits + 1);
  for (std::size_t i = 0; i < count; ++i)
    codes[i] = static_cast<std::uint8_t>(std::to_integer<unsigned>(bytes[i]) >> (8 - bits));
  return codes;
}

// One bit at a time, as the document says it.
std::vector<std::byte> packed_bit_by_bit(unsigned bits, const std::vector<std::uint8_t>& codes) {
  std::vector<std::byte> packed((codes.size() * bits + 7) / 8);
  for (std::size_t j = 0; j < codes.size() * bits; ++j)
    if ((codes[j / bits] >> j % bits & 1) != 0) packed[j / 8] |= std::byte(1U << j % 8);
  return packed;
}

}  // namespace

BOOST_AUTO_TEST_CASE(packs_lowest_bits_first) {
  const std::vector<std::uint8_t> codes = {1, 2, 7, 0, 5};
  std::vector<std::byte> packed(packed_bytes(codes.size(), 3));
  pack_codes(3, codes, packed);
  // 101 000 111 010 001, read from the right.
  BOOST_TEST(test::hex(packed) == "d151");
  std::vector<std::uint8_t> back(codes.size());
  unpack_codes(3, packed, back);
  BOOST_TEST(back == codes);
}

BOOST_AUTO_TEST_CASE(agrees_with_bits_one_at_a_time_at_every_width_and_length) {
  for (unsigned bits = 1; bits <= 8; ++bits) {
    for (std::size_t count = 0; count <= 200; ++count) {
      const auto codes = random_codes(count, bits);
      BOOST_TEST_REQUIRE(packed_bytes(count, bits) == (count * bits + 7) / 8);
      // Bytes around it show what is written beyond.
      std::vector<std::byte> packed(packed_bytes(count, bits) + 16, std::byte{0xA5});
      const MutableByteSpan inner(packed.data() + 8, packed.size() - 16);
      pack_codes(bits, codes, inner);
      const auto expected = packed_bit_by_bit(bits, codes);
      BOOST_TEST_REQUIRE(test::hex(inner) == test::hex(expected));
      for (std::size_t i = 0; i < 8; ++i) {
        BOOST_TEST_REQUIRE(bool(packed[i] == std::byte{0xA5}));
        BOOST_TEST_REQUIRE(bool(packed[packed.size() - 1 - i] == std::byte{0xA5}));
      }
      std::vector<std::uint8_t> back(count + 8, 0x5A);
      unpack_codes(bits, inner, std::span(back).first(count));
      BOOST_TEST_REQUIRE(std::equal(codes.begin(), codes.end(), back.begin()));
      for (std::size_t i = count; i < back.size(); ++i) BOOST_TEST_REQUIRE(back[i] == 0x5A);
    }
  }
}

BOOST_AUTO_TEST_CASE(takes_no_bytes_for_no_bits) {
  BOOST_TEST(packed_bytes(1000, 0) == 0u);
  BOOST_TEST(packed_bytes(0, 8) == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
