#include "state/tensor/element_decoder.h"

#include <cmath>
#include <limits>
#include <vector>

#include "boost_test.h"

using namespace thalia;
using thalia::state::decode_elements;

BOOST_AUTO_TEST_SUITE(element_decoder)

namespace {

std::vector<double> decoded(DType dtype, const std::vector<std::uint8_t>& bytes,
                            std::uint64_t first, std::size_t count) {
  std::vector<double> out(count);
  decode_elements<double>(dtype, as_byte_span(bytes), first, out);
  return out;
}

double code(DType dtype, std::uint8_t value) {
  return decoded(dtype, {value}, 0, 1)[0];
}

template <typename T>
double number(T value) {
  double out = 0;
  decode_elements<double>(DTypeOf<T>::value, as_byte_span(std::vector<T>{value}), 0, {&out, 1});
  return out;
}

double half(std::uint16_t bits) {
  double out = 0;
  decode_elements<double>(DType::f16, as_byte_span(std::vector{bits}), 0, {&out, 1});
  return out;
}

}  // namespace

// Greatest and least values: OCP 8-bit Floating Point Specification 1.0, table 1; OCP Microscaling
// Formats 1.0, tables 1, 3, 5 and 7; for the fnuz types, the MLIR builtin dialect.
BOOST_AUTO_TEST_CASE(small_floats_have_the_values_of_their_specifications) {
  BOOST_TEST(code(DType::f8_e4m3, 0x7E) == 448);
  BOOST_TEST(code(DType::f8_e4m3, 0x81) == -std::ldexp(1, -9));
  BOOST_TEST(std::isnan(code(DType::f8_e4m3, 0xFF)));
  BOOST_TEST(code(DType::f8_e5m2, 0x7B) == 57344);
  BOOST_TEST(code(DType::f8_e5m2, 0x01) == std::ldexp(1, -16));
  BOOST_TEST(code(DType::f8_e5m2, 0xFC) == -std::numeric_limits<double>::infinity());
  BOOST_TEST(std::isnan(code(DType::f8_e5m2, 0x7D)));
  BOOST_TEST(code(DType::f8_e8m0, 0) == std::ldexp(1, -127));
  BOOST_TEST(code(DType::f8_e8m0, 0xFE) == std::ldexp(1, 127));
  BOOST_TEST(std::isnan(code(DType::f8_e8m0, 0xFF)));
  BOOST_TEST(code(DType::f8_e4m3fnuz, 0x7F) == 240);
  BOOST_TEST(std::isnan(code(DType::f8_e4m3fnuz, 0x80)));
  BOOST_TEST(code(DType::f8_e5m2fnuz, 0x7F) == 57344);
  BOOST_TEST(code(DType::f8_e5m2fnuz, 0x01) == std::ldexp(1, -17));
  BOOST_TEST(std::isnan(code(DType::f8_e5m2fnuz, 0x80)));
  BOOST_TEST(code(DType::f6_e2m3, 0x1F) == 7.5);
  BOOST_TEST(code(DType::f6_e2m3, 0x21) == -0.125);
  BOOST_TEST(code(DType::f6_e3m2, 0x1F) == 28);
  BOOST_TEST(code(DType::f6_e3m2, 0x01) == 0.0625);
  BOOST_TEST(code(DType::f4_e2m1, 0x7) == 6);
  BOOST_TEST(code(DType::f4_e2m1, 0x9) == -0.5);
}

BOOST_AUTO_TEST_CASE(half_floats_have_their_values) {
  BOOST_TEST(half(0x0001) == std::ldexp(1, -24));
  BOOST_TEST(half(0x83FF) == -std::ldexp(1023, -24));
  BOOST_TEST(half(0x7BFF) == 65504);
  BOOST_TEST(half(0xFC00) == -std::numeric_limits<double>::infinity());
  BOOST_TEST(std::isnan(half(0x7C01)));
  for (std::uint32_t bits = 0x0400; bits < 0x7C00; ++bits) {
    const double magnitude = std::ldexp(1024 + bits % 1024, static_cast<int>(bits >> 10) - 25);
    BOOST_REQUIRE(half(static_cast<std::uint16_t>(bits)) == magnitude);
    BOOST_REQUIRE(half(static_cast<std::uint16_t>(bits | 0x8000)) == -magnitude);
  }
}

BOOST_AUTO_TEST_CASE(whole_elements_have_their_values) {
  BOOST_TEST(number(0.1f) == static_cast<double>(0.1f));
  BOOST_TEST(number(-1e300) == -1e300);
  BOOST_TEST(number(BFloat16{0xC049}) == -3.140625);
  BOOST_TEST(number(std::int8_t{-128}) == -128);
  BOOST_TEST(number(std::uint8_t{200}) == 200);
  BOOST_TEST(number(std::int16_t{-32768}) == -32768);
  BOOST_TEST(number(std::uint16_t{65535}) == 65535);
  BOOST_TEST(number(std::int32_t{-2147483647 - 1}) == -2147483648.0);
  BOOST_TEST(number(std::uint32_t{4294967295}) == 4294967295.0);
  BOOST_TEST(number(std::int64_t{-5}) == -5);
  BOOST_TEST(number(~std::uint64_t{0}) == 18446744073709551616.0);
  BOOST_TEST(code(DType::boolean, 1) == 1);
}

// Least significant bits first, elements across bytes: docs/format/format.md, "Element types".
BOOST_AUTO_TEST_CASE(packed_elements_are_taken_out_of_their_bytes) {
  using Values = std::vector<double>;
  const std::vector<std::uint8_t> bytes{0b1110'0100, 0b1000'0111, 0b0000'0001};
  BOOST_TEST(decoded(DType::u2, bytes, 0, 6) == (Values{0, 1, 2, 3, 3, 1}));
  BOOST_TEST(decoded(DType::i2, bytes, 1, 3) == (Values{1, -2, -1}));
  BOOST_TEST(decoded(DType::ternary, bytes, 3, 2) == (Values{-1, -1}));
  BOOST_TEST(decoded(DType::u4, bytes, 0, 4) == (Values{4, 14, 7, 8}));
  BOOST_TEST(decoded(DType::i4, bytes, 1, 3) == (Values{-2, 7, -8}));
  BOOST_TEST(decoded(DType::binary, bytes, 2, 4) == (Values{1, -1, -1, 1}));
  BOOST_TEST(decoded(DType::f4_e2m1, bytes, 1, 2) == (Values{-4, 6}));
  // Codes 0b100100, 0b011110+1 bit of the next byte, …: 36, 31, 24, 0.
  BOOST_TEST(decoded(DType::f6_e2m3, bytes, 0, 4) == (Values{-0.5, 7.5, 4, 0}));
}

BOOST_AUTO_TEST_CASE(integers_of_64_bits_and_complex_numbers_have_types_of_their_own) {
  const std::vector<std::int64_t> integers{9007199254740993, -1};
  std::vector<std::int64_t> out(1);
  decode_elements<std::int64_t>(DType::i64, as_byte_span(integers), 0, out);
  BOOST_TEST(out[0] == 9007199254740993);
  const std::vector<std::complex<float>> numbers{{1, -2}, {0.5f, 3}};
  std::vector<std::complex<double>> complex(1);
  decode_elements<std::complex<double>>(DType::c64, as_byte_span(numbers), 1, complex);
  BOOST_TEST((complex[0] == std::complex<double>(0.5, 3)));
  decode_elements<std::complex<double>>(DType::i64, as_byte_span(integers), 1, complex);
  BOOST_TEST((complex[0] == std::complex<double>(-1, 0)));
}

BOOST_AUTO_TEST_SUITE_END()
