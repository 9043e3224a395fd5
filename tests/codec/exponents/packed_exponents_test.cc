#include "codec/exponents/packed_exponents.h"

#include <string>

#include "boost_test.h"
#include "codec/cpu/element_samples.h"
#include "codec/exponents/code.h"
#include "support/bytes.h"

using namespace thalia;
using codec::Content;
using codec::ElementLayout;
using test::Bytes;
using test::hex;

BOOST_AUTO_TEST_SUITE(packed_exponents)

namespace {

constexpr test::StreamCodec kCodec{codec::packed_exponents_encode, codec::packed_exponents_decode};
constexpr ElementLayout kBF16{Content::floats, 2, 8};

Bytes encoded(ElementLayout layout, ByteSpan raw) {
  Bytes out;
  BOOST_REQUIRE(codec::packed_exponents_encode(layout, raw, out));
  return out;
}

double ratio(ElementLayout layout) {
  const Bytes raw = test::normal_elements(layout, 100000);
  return static_cast<double>(raw.size()) / static_cast<double>(encoded(layout, raw).size());
}

// 40 numbers of bf16: 1.0, the fourth -2.0. The example of docs/format/examples.md.
Bytes example() {
  Bytes raw;
  for (int i = 0; i < 40; ++i) {
    raw.push_back(i == 3 ? std::byte{0x00} : std::byte{0x80});
    raw.push_back(i == 3 ? std::byte{0xC0} : std::byte{0x3F});
  }
  return raw;
}

std::string refusal_with(std::size_t at, int value) {
  Bytes stored = encoded(kBF16, example());
  stored.at(at) = static_cast<std::byte>(value);
  return test::refusal(kCodec, stored, 80);
}

}  // namespace

BOOST_AUTO_TEST_CASE(known_answer) {
  const std::string low = "00000001" + std::string(72, '0');
  BOOST_TEST(hex(encoded(kBF16, example())) ==
             "0208010001000000"
             "7f"
             "0800000000000000" +
                 low + "80");
}

BOOST_AUTO_TEST_CASE(every_chunk_comes_back_with_the_same_stream_from_each_set) {
  check_round_trips(kCodec, test::float_layouts());
}

BOOST_AUTO_TEST_CASE(other_content_does_not_shrink) {
  for (const ElementLayout layout :
       {ElementLayout{Content::bytes, 1, 0}, ElementLayout{Content::integers, 4, 0},
        ElementLayout{Content::floats, 1, 4}}) {
    const Bytes raw(1000, std::byte{0});
    Bytes out;
    BOOST_TEST(!codec::packed_exponents_encode(layout, raw, out));
    BOOST_TEST((out == raw));
  }
}

BOOST_AUTO_TEST_CASE(normal_weights_shrink_as_far_as_seven_exponents_let_them) {
  BOOST_TEST(ratio({Content::floats, 2, 8}) >= 1.42);
  BOOST_TEST(ratio({Content::floats, 2, 5}) >= 1.12);
  BOOST_TEST(ratio({Content::floats, 4, 8}) >= 1.17);
  BOOST_TEST(ratio({Content::floats, 8, 11}) >= 1.10);
}

BOOST_AUTO_TEST_CASE(width_of_codes_follows_the_counts) {
  const auto bits_for = [](unsigned symbols, std::uint32_t each, std::uint32_t noise) {
    codec::ByteCounts counts;
    counts.fill(noise);
    for (unsigned i = 0; i < symbols; ++i) counts[100 + i] = each;
    return codec::choose_exponent_code(counts, 8).code_bits;
  };
  BOOST_TEST(bits_for(1, 1000, 0) == 1);
  BOOST_TEST(bits_for(3, 1000, 0) == 2);
  BOOST_TEST(bits_for(7, 1000, 0) == 3);
  BOOST_TEST(bits_for(15, 1000, 0) == 4);
  // The eighth is rare enough to lie beside.
  BOOST_TEST(bits_for(7, 1000, 1) == 3);
}

BOOST_AUTO_TEST_CASE(damaged_streams_are_refused_or_decode_to_something) {
  Bytes raw = test::normal_elements(kBF16, 150);
  raw.push_back(std::byte{1});
  check_survives_damage(kCodec, encoded(kBF16, raw), raw.size());
  const ElementLayout f16{Content::floats, 2, 5};
  raw = test::normal_elements(f16, 300);
  check_survives_damage(kCodec, encoded(f16, raw), raw.size());
}

BOOST_AUTO_TEST_CASE(refusals_say_what_is_wrong) {
  const auto says = [](const std::string& text, const std::string& part) {
    BOOST_TEST(text.find(part) != std::string::npos, text << " does not say " << part);
  };
  says(refusal_with(0, 3), "element_bytes: got 3, expected 2, 4 or 8");
  says(refusal_with(1, 9), "symbol_bits: got 9, expected 1 to 8");
  says(refusal_with(2, 5), "code_bits: got 5, expected 1 to 4");
  says(refusal_with(3, 1), "zero_3: got 1, expected 0");
  says(refusal_with(4, 2), "stored bytes: got 58, expected 59");
  const Bytes halves = test::normal_elements({Content::floats, 2, 5}, 300);
  Bytes stored = encoded({Content::floats, 2, 5}, halves);
  stored.at(8) |= std::byte{1};
  says(test::refusal(kCodec, stored, halves.size()), "expected no bit below the highest 5");
  // Two escapes where one is stored, none where one is, and one after the last number.
  says(refusal_with(9, 0x0C), "escapes: got 1, expected one for each code");
  says(refusal_with(9, 0x00), "escapes: got 1, expected 0, as many as codes");
  says(refusal_with(14, 0x01), "padding: got 1, expected 0");
}

BOOST_AUTO_TEST_SUITE_END()
