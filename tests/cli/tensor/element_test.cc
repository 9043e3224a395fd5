#include "cli/tensor/element.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "boost_test.h"

using namespace thalia;
using namespace thalia::cli;

BOOST_AUTO_TEST_SUITE(element)

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

float small(DType dtype, std::uint32_t bits) {
  const std::array<std::uint16_t, 1> word{static_cast<std::uint16_t>(bits)};
  return std::get<float>(decode_element(dtype, as_byte_span(word), 0));
}

// The magnitudes of a binary format in ascending order by counting up: neighbours lie one step
// apart, and from the second binade on the step doubles every 2^mantissa_bits codes. `smallest` is
// the smallest subnormal.
std::vector<double> count_up(unsigned codes, unsigned mantissa_bits, double smallest) {
  std::vector<double> values{0};
  double step = smallest;
  for (unsigned code = 1; code < codes; ++code) {
    if (code % (1u << mantissa_bits) == 1 && code > (2u << mantissa_bits)) step *= 2;
    values.push_back(values.back() + step);
  }
  return values;
}

// Compares all codes, the upper half being the negative numbers.
void check_all(DType dtype, unsigned bits, const std::vector<double>& magnitudes,
               const std::map<unsigned, float>& special) {
  const unsigned half = 1u << (bits - 1);
  BOOST_TEST_REQUIRE(magnitudes.size() == half);
  for (unsigned code = 0; code < 2 * half; ++code) {
    BOOST_TEST_CONTEXT(dtype_name(dtype) << " code " << code) {
      const float got = small(dtype, code);
      if (const auto found = special.find(code); found != special.end()) {
        if (std::isnan(found->second)) {
          BOOST_TEST(std::isnan(got));
        } else {
          BOOST_TEST(got == found->second);
        }
        continue;
      }
      const double want = code < half ? magnitudes[code] : -magnitudes[code - half];
      BOOST_TEST(static_cast<double>(got) == want);
      BOOST_TEST(std::signbit(got) == (code >= half));
    }
  }
}

std::string text(const Element& element) {
  std::string out;
  append_text(out, element);
  return out;
}
std::string json(const Element& element) {
  std::string out;
  append_json(out, element);
  return out;
}

}  // namespace

// OCP 8-bit Floating Point Specification 1.0: E4M3 has no infinities, S.1111.111 is NaN, greatest
// 448; E5M2 follows IEEE 754.
BOOST_AUTO_TEST_CASE(f8_of_ocp_for_every_code) {
  check_all(DType::f8_e4m3, 8, count_up(128, 3, 0x1p-9), {{0x7F, kNan}, {0xFF, kNan}});
  BOOST_TEST(small(DType::f8_e4m3, 0x7E) == 448.0f);
  BOOST_TEST(small(DType::f8_e4m3, 0x38) == 1.0f);
  check_all(DType::f8_e5m2, 8, count_up(128, 2, 0x1p-16),
            {{0x7C, kInfinity},
             {0x7D, kNan},
             {0x7E, kNan},
             {0x7F, kNan},
             {0xFC, -kInfinity},
             {0xFD, kNan},
             {0xFE, kNan},
             {0xFF, kNan}});
  BOOST_TEST(small(DType::f8_e5m2, 0x7B) == 57344.0f);
  BOOST_TEST(small(DType::f8_e5m2, 0x3C) == 1.0f);
}

// Noune et al. 2022 (arXiv:2206.02915): finite, unsigned zero, 0x80 is the one NaN.
BOOST_AUTO_TEST_CASE(f8_fnuz_for_every_code) {
  check_all(DType::f8_e4m3fnuz, 8, count_up(128, 3, 0x1p-10), {{0x80, kNan}});
  BOOST_TEST(small(DType::f8_e4m3fnuz, 0x7F) == 240.0f);
  check_all(DType::f8_e5m2fnuz, 8, count_up(128, 2, 0x1p-17), {{0x80, kNan}});
  BOOST_TEST(small(DType::f8_e5m2fnuz, 0x7F) == 57344.0f);
}

// OCP Microscaling Formats 1.0.
BOOST_AUTO_TEST_CASE(microscaling_types_for_every_code) {
  check_all(DType::f6_e2m3, 6, count_up(32, 3, 0.125), {});
  BOOST_TEST(small(DType::f6_e2m3, 0x1F) == 7.5f);
  check_all(DType::f6_e3m2, 6, count_up(32, 2, 0.0625), {});
  BOOST_TEST(small(DType::f6_e3m2, 0x1F) == 28.0f);
  check_all(DType::f4_e2m1, 4, {0, 0.5, 1, 1.5, 2, 3, 4, 6}, {});

  double scale = 0x1p-127;
  for (unsigned code = 0; code < 255; ++code, scale *= 2)
    BOOST_TEST(static_cast<double>(small(DType::f8_e8m0, code)) == scale);
  BOOST_TEST(std::isnan(small(DType::f8_e8m0, 255)));
}

BOOST_AUTO_TEST_CASE(f16_for_every_code) {
  std::map<unsigned, float> special{{0x7C00, kInfinity}, {0xFC00, -kInfinity}};
  for (unsigned code = 0x7C01; code < 0x8000; ++code) {
    special[code] = kNan;
    special[code | 0x8000] = kNan;
  }
  check_all(DType::f16, 16, count_up(0x8000, 10, 0x1p-24), special);
}

BOOST_AUTO_TEST_CASE(bf16_is_the_upper_half_of_f32) {
  BOOST_TEST(small(DType::bf16, 0x3F80) == 1.0f);
  BOOST_TEST(small(DType::bf16, 0xC049) == -3.140625f);
  BOOST_TEST(small(DType::bf16, 0xFF80) == -kInfinity);
  BOOST_TEST(std::isnan(small(DType::bf16, 0x7FC0)));
  BOOST_TEST(small(DType::bf16, 1) == 0x1p-133f);
}

BOOST_AUTO_TEST_CASE(packed_elements_are_a_bit_stream_from_the_lowest_bit) {
  const auto at = [](DType dtype, std::vector<std::uint8_t> bytes, std::uint64_t i) {
    return text(decode_element(dtype, as_byte_span(bytes), i));
  };
  BOOST_TEST(at(DType::u4, {0x21, 0x43}, 0) == "1");
  BOOST_TEST(at(DType::u4, {0x21, 0x43}, 3) == "4");
  BOOST_TEST(at(DType::i4, {0x8F}, 0) == "-1");
  BOOST_TEST(at(DType::i4, {0x8F}, 1) == "-8");
  BOOST_TEST(at(DType::i4, {0x70}, 1) == "7");
  BOOST_TEST(at(DType::u2, {0b11100100}, 3) == "3");
  BOOST_TEST(at(DType::i2, {0b11100100}, 2) == "-2");
  BOOST_TEST(at(DType::i2, {0b11100100}, 3) == "-1");
  BOOST_TEST(at(DType::ternary, {0b00110100}, 1) == "1");
  BOOST_TEST(at(DType::ternary, {0b00110100}, 2) == "-1");
  BOOST_TEST(at(DType::binary, {0b00000010}, 0) == "-1");
  BOOST_TEST(at(DType::binary, {0b00000010}, 1) == "1");
  BOOST_TEST(at(DType::binary, {0, 0x80}, 15) == "1");
  // Element 1 of six bits takes two from byte 0 and four from byte 1: 0b0001'01 = 0.625.
  BOOST_TEST(at(DType::f6_e2m3, {0b01000000, 0b00000001}, 1) == "0.625");
}

BOOST_AUTO_TEST_CASE(whole_types_keep_their_extremes) {
  const auto first = [](DType dtype, const auto& value) {
    return text(decode_element(dtype, as_byte_span(std::array{value}), 0));
  };
  BOOST_TEST(first(DType::i8, std::int8_t{-128}) == "-128");
  BOOST_TEST(first(DType::i16, std::int16_t{-32768}) == "-32768");
  BOOST_TEST(first(DType::i64, std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  BOOST_TEST(first(DType::u64, ~std::uint64_t{0}) == "18446744073709551615");
  BOOST_TEST(first(DType::boolean, std::uint8_t{0}) == "false");
  BOOST_TEST(first(DType::boolean, std::uint8_t{2}) == "true");
  BOOST_TEST(first(DType::c64, std::complex<float>(1, -2.5f)) == "1.0-2.5j");
  BOOST_TEST(first(DType::c128, std::complex<double>(-0.0, kNan)) == "-0.0+nanj");
}

BOOST_AUTO_TEST_CASE(decimals_are_the_shortest_that_read_back) {
  BOOST_TEST(text(0.1f) == "0.1");
  BOOST_TEST(text(0.1) == "0.1");
  BOOST_TEST(text(1.0f) == "1.0");
  BOOST_TEST(text(-0.0f) == "-0.0");
  BOOST_TEST(text(1e30) == "1e+30");
  BOOST_TEST(text(small(DType::f16, 0x2E66)) == "0.099975586");
  for (std::uint32_t bits : {0x00000001u, 0x007FFFFFu, 0x3EAAAAABu, 0x7F7FFFFFu, 0x4B800001u}) {
    const float value = std::bit_cast<float>(bits);
    const std::string decimal = text(value);
    float back = 0;
    std::from_chars(decimal.data(), decimal.data() + decimal.size(), back);
    BOOST_TEST(std::bit_cast<std::uint32_t>(back) == bits, decimal);
  }
}

BOOST_AUTO_TEST_CASE(json_has_strings_for_what_is_not_finite) {
  BOOST_TEST(json(1.5f) == "1.5");
  BOOST_TEST(json(static_cast<double>(kNan)) == "\"NaN\"");
  BOOST_TEST(json(kInfinity) == "\"Infinity\"");
  BOOST_TEST(json(-kInfinity) == "\"-Infinity\"");
  BOOST_TEST(json(true) == "true");
  BOOST_TEST(json(std::uint64_t{7}) == "7");
  BOOST_TEST(json(std::complex<float>(1, kInfinity)) == "[1.0,\"Infinity\"]");
  BOOST_TEST(text(-kInfinity) == "-inf");
  BOOST_TEST(text(kNan) == "nan");
}

BOOST_AUTO_TEST_SUITE_END()
