#include "codec/rans/plane_entropy.h"

#include <string>
#include <vector>

#include "boost_test.h"
#include "codec/cpu/element_samples.h"
#include "support/bytes.h"

using namespace thalia;
using codec::Content;
using codec::ElementLayout;
using test::Bytes;
using test::hex;

BOOST_AUTO_TEST_SUITE(plane_entropy)

namespace {

constexpr test::StreamCodec kCodec{codec::plane_entropy_encode, codec::plane_entropy_decode};
constexpr ElementLayout kBytes{Content::bytes, 1, 0};
constexpr ElementLayout kBF16{Content::floats, 2, 8};

// Where the parts of the example's only plane start.
constexpr std::size_t kEntry = 4, kBitmap = 12, kFrequencies = 44, kStates = 48;

Bytes encoded(ElementLayout layout, ByteSpan raw) {
  Bytes out;
  BOOST_REQUIRE(codec::plane_entropy_encode(layout, raw, out));
  return out;
}

double ratio(ElementLayout layout) {
  const Bytes raw = test::normal_elements(layout, 200000);
  return static_cast<double>(raw.size()) / static_cast<double>(encoded(layout, raw).size());
}

// The example of docs/format/examples.md.
Bytes example() {
  Bytes raw(300, std::byte{'a'});
  for (const std::size_t i : {7, 39, 71}) raw[i] = std::byte{'b'};
  return raw;
}

std::string refusal_with(std::size_t at, std::initializer_list<int> values) {
  Bytes stored = encoded(kBytes, example());
  for (const int value : values) stored.at(at++) = static_cast<std::byte>(value);
  return test::refusal(kCodec, stored, 300);
}

void check_says(const std::string& text, const std::string& part) {
  BOOST_TEST(text.find(part) != std::string::npos, text << " does not say " << part);
}

}  // namespace

BOOST_AUTO_TEST_CASE(known_answer) {
  std::string expected =
      "01000000"
      "02000000a6000000";
  expected +=
      "000000000000000000000000060000000000000000000000000000000000"
      "0000";
  expected += "d70f2900";
  for (std::size_t i = 0; i < 32; ++i)
    expected += i == 7 ? "e52f0800" : i < 12 ? "d08c0000" : "888b0000";
  BOOST_TEST(hex(encoded(kBytes, example())) == expected + "f4bf");
}

BOOST_AUTO_TEST_CASE(planes_are_stored_constant_or_coded) {
  const Bytes weights = test::normal_elements(kBF16, 2000);
  const Bytes stored = encoded(kBF16, weights);
  // Elements of two bytes, rotated; plane 0 is 2000 bytes as they are, plane 1 coded.
  BOOST_TEST(hex(ByteSpan(stored).first(14)) ==
             "02010000"
             "00000000d0070000"
             "0200");
  const Bytes zeros(4001, std::byte{0});
  BOOST_TEST(hex(encoded({Content::integers, 4, 0}, zeros)) ==
             "04000000" + std::string(4, '*').replace(0, 4, "01000000") + "00000000" +
                 "0100000000000000"
                 "0100000000000000"
                 "0100000000000000"
                 "00");
}

BOOST_AUTO_TEST_CASE(every_chunk_comes_back_with_the_same_stream_from_each_set) {
  check_round_trips(kCodec, test::all_layouts());
}

BOOST_AUTO_TEST_CASE(normal_weights_shrink_to_a_hundredth_of_their_entropy) {
  BOOST_TEST(ratio(kBF16) >= 1.50);
  BOOST_TEST(ratio({Content::floats, 2, 5}) >= 1.18);
  BOOST_TEST(ratio({Content::floats, 4, 8}) >= 1.20);
  BOOST_TEST(ratio({Content::floats, 8, 11}) >= 1.13);
  BOOST_TEST(ratio({Content::integers, 1, 0}) >= 1.14);
}

BOOST_AUTO_TEST_CASE(noise_does_not_shrink) {
  const Bytes raw = test::random_bytes(100000);
  for (const ElementLayout layout : test::all_layouts()) {
    Bytes out;
    BOOST_TEST(!codec::plane_entropy_encode(layout, raw, out));
    BOOST_TEST((out == raw));
  }
}

BOOST_AUTO_TEST_CASE(damaged_streams_are_refused_or_decode_to_something) {
  Bytes raw = test::normal_elements(kBF16, 500);
  raw.push_back(std::byte{1});
  check_survives_damage(kCodec, encoded(kBF16, raw), raw.size());
  check_survives_damage(kCodec, encoded(kBytes, example()), 300);
}

// The states end where they started only after the right words: damage after the tables does not
// go unseen.
BOOST_AUTO_TEST_CASE(damaged_words_are_refused) {
  Bytes raw(20000, std::byte{0});
  const Bytes noise = test::random_bytes(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i)
    if (noise[i] < std::byte{60}) raw[i] = noise[i] & std::byte{7};
  const Bytes stored = encoded(kBytes, raw);
  Bytes damaged = stored;
  for (std::size_t i = stored.size() - 200; i < stored.size(); ++i) {
    damaged[i] ^= std::byte{0x10};
    BOOST_TEST(!test::refusal(kCodec, damaged, raw.size()).empty());
    damaged[i] = stored[i];
  }
}

BOOST_AUTO_TEST_CASE(refusals_say_what_is_wrong) {
  check_says(refusal_with(0, {3}), "element_bytes: got 3, expected 1, 2, 4 or 8");
  check_says(refusal_with(1, {1}), "is_rotated: got 1, expected 0");
  check_says(refusal_with(0, {2, 2}), "is_rotated: got 2, expected 0 or 1");
  check_says(refusal_with(2, {1}), "zero_2: got 1, expected 0");
  check_says(refusal_with(kEntry, {3}), "mode: got 3, expected 0 to 2");
  check_says(refusal_with(kEntry, {2, 1}), "value: got 1, expected 0");
  check_says(refusal_with(kEntry + 2, {1}), "zero_2: got 1, expected 0");
  check_says(refusal_with(kEntry, {0}), "length of a stored plane: got 166, expected 300");
  check_says(refusal_with(kEntry, {1}), "length of a constant plane: got 166, expected 0");
  check_says(refusal_with(kEntry + 4, {255}), "length of a plane: got 255, expected 166");
  check_says(refusal_with(kEntry + 4, {165}), "bytes after the planes: got 1, expected 0");
  check_says(refusal_with(kEntry + 4, {0}), "bytes of a coded plane: got 0, expected 32 more");
}

BOOST_AUTO_TEST_CASE(hostile_frequencies_and_states_are_refused) {
  const auto with_frequencies = [](int a, int b) {
    return refusal_with(kFrequencies, {a % 256, a / 256, b % 256, b / 256});
  };
  check_says(with_frequencies(4055, 42), "sum of frequencies: got 4097, expected 4096");
  check_says(with_frequencies(4055, 40), "sum of frequencies: got 4095, expected 4096");
  check_says(with_frequencies(4055, 0), "frequency: got 0, expected 1 to 4095");
  check_says(with_frequencies(4096, 41), "frequency: got 4096, expected 1 to 4095");
  check_says(with_frequencies(65535, 41), "frequency: got 65535, expected 1 to 4095");
  // One byte fewer, or two more, than there are frequencies for.
  check_says(refusal_with(kBitmap + 12, {2}), "sum of frequencies");
  check_says(refusal_with(kBitmap + 12, {14}), "frequency: got 36048, expected 1 to 4095");
  check_says(refusal_with(kStates, {0, 0x7F, 0, 0}),
             "state: got 32512, expected 32768 to 2147483647");
  check_says(refusal_with(kStates, {0, 0, 0, 0x80}), "state: got 2147483648");
  check_says(refusal_with(kStates, {0, 0x80, 1, 0}), "last state");
}

// Planes of 25, 256, 2 and 1 byte values, of elements of one, two and four bytes, of several blocks
// and of less than one, in every order.
BOOST_AUTO_TEST_CASE(two_chunks_at_once_come_back_as_each_alone) {
  constexpr ElementLayout kF32{Content::floats, 4, 8};
  std::vector<Bytes> raws{test::normal_elements(kBF16, 10007), Bytes(40, std::byte{7}),
                          test::normal_elements(kF32, 5000), example()};
  Bytes skewed = test::random_bytes(9001);
  for (std::size_t i = 0; i < skewed.size(); ++i)
    if (i % 8 != 0) skewed[i] &= std::byte{3};
  raws.push_back(skewed);
  const ElementLayout layouts[]{kBF16, kBytes, kF32, kBytes, kBytes};
  std::vector<Bytes> stored;
  for (std::size_t i = 0; i < raws.size(); ++i) stored.push_back(encoded(layouts[i], raws[i]));
  for (const codec::VectorSet set : test::present_vector_sets()) {
    for (std::size_t i = 0; i < raws.size(); ++i) {
      for (std::size_t k = 0; k < raws.size(); ++k) {
        Bytes first(raws[i].size()), second(raws[k].size());
        codec::plane_entropy_decode_two({stored[i], first}, {stored[k], second}, set);
        BOOST_TEST((first == raws[i] && second == raws[k]), "chunks " << i << " and " << k);
      }
    }
  }
}

// Bytes all over the second chunk are changed in turn: it is refused, or is itself a stream.
BOOST_AUTO_TEST_CASE(damage_in_one_of_two_chunks_is_refused_as_in_one) {
  const Bytes raw = test::normal_elements(kBF16, 3000);
  const Bytes good = encoded(kBF16, raw);
  std::size_t refused = 0;
  for (std::size_t i = 0; i < good.size(); i += 7) {
    Bytes bad = good;
    bad[i] ^= std::byte{0x40};
    Bytes alone(raw.size()), first(raw.size()), second(raw.size());
    std::string one, two;
    try {
      codec::plane_entropy_decode(bad, alone);
    } catch (const CompressionError& error) {
      one = error.what();
    }
    try {
      codec::plane_entropy_decode_two({good, first}, {bad, second});
    } catch (const CompressionError& error) {
      two = error.what();
    }
    BOOST_TEST(one == two);
    if (one.empty()) {
      BOOST_TEST((first == raw && second == alone));
    } else {
      ++refused;
    }
  }
  BOOST_TEST(refused > 100u);
}

BOOST_AUTO_TEST_SUITE_END()
