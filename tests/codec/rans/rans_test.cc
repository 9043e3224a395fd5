#include "codec/rans/kernels.h"

#include <array>
#include <numeric>

#include "boost_test.h"
#include "codec/cpu/element_samples.h"
#include "codec/rans/code.h"
#include "support/bytes.h"

using namespace thalia;
using codec::ByteCounts;
using codec::RansFrequencies;

BOOST_AUTO_TEST_SUITE(rans)

namespace {

constexpr std::size_t kStates = codec::kRansStates;
using States = std::array<std::uint32_t, kStates>;

unsigned sum_of(const RansFrequencies& frequencies) {
  return std::accumulate(frequencies.begin(), frequencies.end(), 0u);
}

struct Coded {
  std::vector<std::byte> words;
  States states;
};

Coded coded(const RansFrequencies& frequencies, ByteSpan symbols, codec::VectorSet set) {
  codec::RansEncodeTable table;
  make_table(frequencies, table);
  std::vector<std::byte> room(2 * symbols.size() + 64);
  Coded out;
  out.states.fill(codec::kRansLow);
  std::byte* const end = room.data() + room.size();
  const std::byte* const words = codec::rans_kernels(set).encode(
      table, symbols.data(), symbols.size() / kStates, out.states.data(), end);
  out.words.assign(words, static_cast<const std::byte*>(end));
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(frequencies_sum_to_the_scale_and_leave_no_byte_out) {
  ByteCounts counts{};
  const auto check = [&] {
    const RansFrequencies frequencies = codec::rans_frequencies(counts);
    BOOST_TEST(sum_of(frequencies) == codec::kRansScale);
    for (std::size_t i = 0; i < counts.size(); ++i)
      BOOST_TEST((frequencies[i] == 0) == (counts[i] == 0));
  };
  counts[3] = 1, counts[200] = 1;
  check();
  counts[3] = 0xffffffff;  // one in four thousand millions
  check();
  counts.fill(1);
  check();
  counts[7] = 0xff000000;  // 255 bytes that would have no frequency
  check();
  for (std::size_t i = 0; i < counts.size(); ++i)
    counts[i] = static_cast<std::uint32_t>(1u << i % 24);
  check();
}

BOOST_AUTO_TEST_CASE(frequencies_are_nearest_where_nothing_is_rare) {
  ByteCounts counts{};
  counts[0] = 100, counts[1] = 300;
  const RansFrequencies frequencies = codec::rans_frequencies(counts);
  BOOST_TEST(frequencies[0] == 1024);
  BOOST_TEST(frequencies[1] == 3072);
  BOOST_TEST(codec::coded_bits(counts, frequencies) == 100 * 2 + 300 * 0.415037499,
             boost::test_tools::tolerance(1e-6));
}

// Also that dividing by each frequency is exact, for states from end to end of their range.
BOOST_AUTO_TEST_CASE(every_frequency_comes_back_from_every_set) {
  const auto sets = test::present_vector_sets();
  for (std::uint16_t frequency = 1; frequency < codec::kRansScale; ++frequency) {
    RansFrequencies frequencies{};
    frequencies[10] = frequency;
    frequencies[20] = static_cast<std::uint16_t>(codec::kRansScale - frequency);
    auto symbols = test::random_bytes(8 * kStates, frequency);
    for (std::byte& symbol : symbols)
      symbol = symbol < std::byte{128} ? std::byte{10} : std::byte{20};
    codec::RansDecodeTable table;
    make_table(frequencies, table);
    const Coded expected = coded(frequencies, symbols, codec::VectorSet::portable);
    for (const codec::VectorSet set : sets) {
      const Coded found = coded(frequencies, symbols, set);
      BOOST_REQUIRE((found.words == expected.words && found.states == expected.states));
      States states = expected.states;
      std::vector<std::byte> out(symbols.size());
      const std::byte* const end = expected.words.data() + expected.words.size();
      codec::RansRun run{table, expected.words.data(), end, states.data(), out.data()};
      const std::size_t groups = codec::rans_kernels(set).decode(run, 8);
      BOOST_REQUIRE(codec::rans_decode_some(table, run.words, end, out.size() - groups * kStates,
                                            states.data(), out.data() + groups * kStates));
      BOOST_REQUIRE((out == symbols && run.words == end));
      for (const std::uint32_t state : states) BOOST_REQUIRE(state == codec::kRansLow);
    }
  }
}

BOOST_AUTO_TEST_CASE(counts_are_of_each_byte) {
  for (const std::size_t length : {0, 1, 7, 8, 9, 1000, 4099}) {
    const auto bytes = test::random_bytes(length);
    ByteCounts expected{};
    for (const std::byte byte : bytes) ++expected[std::to_integer<std::size_t>(byte)];
    BOOST_TEST((codec::count_bytes(bytes) == expected));
  }
}

// 0xEE is where only the pass over all bytes finds it, in and after the last whole vector.
BOOST_AUTO_TEST_CASE(estimated_counts_leave_no_byte_out_and_are_the_same_from_each_set) {
  for (const std::size_t length : {1000, 65535, 65536, 100003}) {
    auto bytes = test::random_bytes(length);
    for (std::byte& byte : bytes) byte &= std::byte{0x8F};
    for (const std::size_t i : {std::size_t{700}, length - 40, length - 1})
      bytes[i] = std::byte{0xEE};
    const ByteCounts expected =
        codec::estimated_counts(bytes, codec::rans_kernels(codec::VectorSet::portable));
    for (const codec::VectorSet set : test::present_vector_sets())
      BOOST_TEST((codec::estimated_counts(bytes, codec::rans_kernels(set)) == expected));
    const ByteCounts exact = codec::count_bytes(bytes);
    BOOST_TEST(expected[0xEE] >= 1);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      BOOST_TEST((expected[i] == 0) == (exact[i] == 0));
      BOOST_TEST(expected[i] <= 1.3 * exact[i] + 16);
      BOOST_TEST(expected[i] >= 0.7 * exact[i] - 16);
    }
  }
}

BOOST_AUTO_TEST_CASE(entropy_is_that_of_the_counts) {
  ByteCounts counts{};
  counts[1] = 1 << 20, counts[2] = 1 << 20;
  BOOST_TEST(codec::entropy_bits(counts) == 2 << 20, boost::test_tools::tolerance(1e-5));
  counts[2] = 0;
  BOOST_TEST(codec::entropy_bits(counts) == 0);
  BOOST_TEST(codec::distinct_bytes(counts) == 1);
}

BOOST_AUTO_TEST_SUITE_END()
