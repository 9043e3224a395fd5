#include "integrity/crc32.h"

#include <cstdint>
#include <optional>

#include "boost_test.h"
#include "integrity/vector_state.h"
#include "support/bytes.h"
#include "support/files.h"

using namespace thalia;
using integrity::crc32;
using integrity::crc32_combine;
using test::bytes_of;

BOOST_AUTO_TEST_SUITE(crc32_suite)

// The check value of CRC-32/ISO-HDLC in the catalogue of parametrised CRC algorithms
// (reveng.sourceforge.io); the others from zlib's crc32().
BOOST_AUTO_TEST_CASE(known_answers) {
  BOOST_TEST(crc32(bytes_of("123456789")) == 0xcbf43926u);
  BOOST_TEST(crc32({}) == 0u);
  BOOST_TEST(crc32(bytes_of("a")) == 0xe8b7be43u);
  BOOST_TEST(crc32(bytes_of("The quick brown fox jumps over the lazy dog")) == 0x414fa339u);
}

// Bit by bit, as the polynomial is defined: vectors, their rests and any alignment give the same.
BOOST_AUTO_TEST_CASE(every_length_and_alignment_gives_the_sum_of_the_definition) {
  const auto bytes = test::random_bytes(1100);
  for (std::size_t begin = 0; begin < 4; ++begin) {
    std::uint32_t state = ~std::uint32_t{0};
    for (std::size_t end = begin; end < bytes.size(); ++end) {
      BOOST_REQUIRE(crc32(ByteSpan(bytes).subspan(begin, end - begin)) == ~state);
      state ^= std::to_integer<std::uint32_t>(bytes[end]);
      for (int bit = 0; bit < 8; ++bit) state = state >> 1 ^ ((state & 1) != 0 ? 0xedb88320u : 0u);
    }
  }
}

#if defined(__x86_64__)
// Whether upper halves of vector registers are in use; nullopt of a processor that does not tell.
std::optional<bool> has_upper_vectors_in_use() {
  // Older processors need not know the question.
  if (__builtin_cpu_supports("avx512f") == 0) return std::nullopt;
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1));
  return (low & 4) != 0;
}

BOOST_AUTO_TEST_CASE(the_upper_vectors_are_clear_behind_it) {
  const auto bytes = test::random_bytes(70000);
  integrity::clear_upper_vectors();
  if (has_upper_vectors_in_use() != std::optional(false)) {
    BOOST_TEST_MESSAGE("the processor does not tell: left out");
    return;
  }
  // The calls between are of the test's own code, which is not compiled for AVX.
  const std::uint32_t sum = crc32(bytes);
  const std::optional<bool> after = has_upper_vectors_in_use();
  BOOST_TEST(sum != 0u);
  BOOST_TEST(after.value() == false);
}
#endif

BOOST_AUTO_TEST_CASE(continues_where_it_stopped) {
  const auto bytes = test::random_bytes(1000);
  const ByteSpan all(bytes);
  for (const std::size_t cut : {0u, 1u, 7u, 500u, 1000u})
    BOOST_TEST(crc32(all.subspan(cut), crc32(all.first(cut))) == crc32(all));
}

BOOST_AUTO_TEST_CASE(combining_gives_the_crc_of_the_concatenation) {
  const auto bytes = test::random_bytes(70000);
  for (const std::size_t size : {0u, 1u, 2u, 255u, 4096u, 70000u}) {
    const ByteSpan all = ByteSpan(bytes).first(size);
    for (const std::size_t cut : {std::size_t{0}, size / 3, size - size / 5, size})
      BOOST_TEST(crc32_combine(crc32(all.first(cut)), crc32(all.subspan(cut)), size - cut) ==
                 crc32(all));
  }
}

BOOST_AUTO_TEST_CASE(threads_give_the_crc_of_one) {
  const auto bytes = test::random_bytes((9 << 20) + 3);
  for (const std::size_t size : {0u, 1u, (1u << 20) - 1, 1u << 20, (1u << 20) + 1, (4u << 20) - 1,
                                 4u << 20, (4u << 20) + 1, (9u << 20) + 3}) {
    const ByteSpan all = ByteSpan(bytes).first(size);
    for (const unsigned threads : {0u, 1u, 3u})
      BOOST_TEST(integrity::crc32_of_all(all, threads) == crc32(all));
  }
}

// From zlib 1.2.13, crc32_combine64(0xcbf43926, 0xe8b7be43, length).
BOOST_AUTO_TEST_CASE(combining_known_answers_at_lengths_beyond_32_bits) {
  BOOST_TEST(crc32_combine(0xcbf43926, 0xe8b7be43, 1ull << 20) == 0xf705afdeu);
  BOOST_TEST(crc32_combine(0xcbf43926, 0xe8b7be43, (1ull << 32) + 5) == 0x018d7aceu);
  BOOST_TEST(crc32_combine(0xcbf43926, 0xe8b7be43, (1ull << 40) + 12345) == 0xba078898u);
}

BOOST_AUTO_TEST_SUITE_END()
