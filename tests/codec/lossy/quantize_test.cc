#include "codec/lossy/quantize.h"

#include <cfloat>
#include <cmath>
#include <limits>
#include <vector>

#include "boost_test.h"
#include "codec/float/conversion.h"
#include "codec/float/samples.h"
#include "support/numbers.h"
#include "thalia/error.h"

using namespace thalia;
using codec::QuantizationLoss;
using codec::uniform_scale;
using codec::UniformScale;
using test::normal_numbers;

BOOST_AUTO_TEST_SUITE(quantize)

namespace {

constexpr DType kFloats[] = {DType::f16, DType::bf16, DType::f32, DType::f64};

std::vector<std::byte> as_type(DType dtype, const std::vector<double>& numbers) {
  std::vector<std::byte> out(numbers.size() * dtype_bits(dtype) / 8);
  codec::convert_elements(DType::f64, dtype, as_byte_span(numbers), out);
  return out;
}

std::vector<double> as_doubles(DType dtype, ByteSpan elements) {
  std::vector<double> out(elements.size() * 8 / dtype_bits(dtype));
  codec::convert_elements(dtype, DType::f64, elements, std::as_writable_bytes(std::span(out)));
  return out;
}

struct RoundTrip {
  UniformScale scale;
  std::vector<std::uint8_t> codes;
  std::vector<double> before, after;
  QuantizationLoss loss;
};

RoundTrip round_trip(DType dtype, ByteSpan group, unsigned bits) {
  RoundTrip trip;
  const auto scale = uniform_scale(dtype, group, bits);
  BOOST_TEST_REQUIRE(scale.has_value());
  trip.scale = *scale;
  trip.before = as_doubles(dtype, group);
  trip.codes.resize(trip.before.size());
  codec::quantize(dtype, group, bits, trip.scale, trip.codes);
  std::vector<std::byte> restored(group.size());
  codec::dequantize(dtype, trip.codes, trip.scale, restored);
  codec::measure_quantization(dtype, group, restored, trip.loss);
  trip.after = as_doubles(dtype, restored);
  return trip;
}

// Half a unit in the last place of a number of the type, at least that of the least one.
double half_ulp(DType dtype, double number) {
  const int mantissa = dtype == DType::f16    ? 10
                       : dtype == DType::bf16 ? 7
                       : dtype == DType::f32  ? 23
                                              : 52;
  const int least = dtype == DType::f16 ? -14 : dtype == DType::f64 ? -1022 : -126;
  const int exponent = number == 0 ? least : std::max(least, std::ilogb(number));
  return std::ldexp(0.5, exponent - mantissa);
}

void check_bound(DType dtype, ByteSpan group, unsigned bits) {
  const RoundTrip trip = round_trip(dtype, group, bits);
  long double largest = 0, squares = 0;
  for (std::size_t i = 0; i < trip.before.size(); ++i) {
    const long double error = std::fabs(static_cast<long double>(trip.before[i]) - trip.after[i]);
    largest = std::max(largest, error);
    squares += error * error;
    // Half a step, and the roundings: of the result, and of the f64 arithmetic.
    const long double magnitude = std::max(std::fabs(trip.before[i]), std::fabs(trip.after[i]));
    const long double roundings = half_ulp(dtype, static_cast<double>(magnitude)) +
                                  0x1p-51L * (magnitude + 255 * trip.scale.scale);
    BOOST_TEST_REQUIRE(error <= trip.scale.scale / 2.0L + roundings,
                       dtype_name(dtype) << " " << bits << " bits: " << trip.before[i] << " became "
                                         << trip.after[i] << " with scale " << trip.scale.scale);
    BOOST_TEST_REQUIRE(trip.codes[i] < 1U << bits);
  }
  BOOST_TEST(trip.loss.count == trip.before.size());
  BOOST_TEST(trip.loss.largest_error == static_cast<double>(largest));
  // In long double no square of an f64 overflows or vanishes; what is reported is an f64.
  const long double rms = std::min<long double>(std::sqrt(squares / trip.before.size()), DBL_MAX);
  if (rms >= DBL_MIN) {
    BOOST_TEST(std::fabs(static_cast<double>(trip.loss.rms_error() / rms) - 1) < 1e-12);
  } else {
    BOOST_TEST(std::fabs(static_cast<double>(trip.loss.rms_error() - rms)) <= DBL_TRUE_MIN);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(places_codes_in_steps_from_the_least_to_the_greatest) {
  const std::vector<float> numbers = {-1, 2, 0.5F, 0, -0.25F};
  const auto scale = uniform_scale(DType::f32, as_byte_span(numbers), 2);
  BOOST_TEST(bool(scale == UniformScale{-1, 1}));
  std::vector<std::uint8_t> codes(numbers.size());
  codec::quantize(DType::f32, as_byte_span(numbers), 2, *scale, codes);
  // 1.5 and 0.75 steps: halves go away from zero.
  BOOST_TEST(codes == (std::vector<std::uint8_t>{0, 3, 2, 1, 1}));
  std::vector<float> restored(numbers.size());
  codec::dequantize(DType::f32, codes, *scale, std::as_writable_bytes(std::span(restored)));
  BOOST_TEST(restored == (std::vector<float>{-1, 2, 1, 0, 0}));
}

BOOST_AUTO_TEST_CASE(stays_within_half_a_step_whatever_the_numbers) {
  for (const DType dtype : kFloats) {
    for (unsigned bits = 1; bits <= 8; ++bits) {
      for (const std::size_t count : {1, 2, 7, 8, 9, 63, 1024, 1025, 3001}) {
        check_bound(dtype, as_type(dtype, normal_numbers(count, 0.02, count)), bits);
        check_bound(dtype, as_type(dtype, normal_numbers(count, 7000, count)), bits);
      }
      const double least = dtype == DType::f64    ? 0x1p-1074
                           : dtype == DType::f32  ? 0x1p-149
                           : dtype == DType::bf16 ? 0x1p-133
                                                  : 0x1p-24;
      for (const double steps : {1.0, 2.0, 3.0, 100.0, 254.0, 255.0, 256.0, 357.0, 1000.0}) {
        check_bound(dtype, as_type(dtype, {0, least, steps * least, -steps * least}), bits);
        check_bound(dtype, as_type(dtype, {steps * least, (steps + 1) * least}), bits);
      }
      const double largest = dtype == DType::f64    ? DBL_MAX
                             : dtype == DType::f32  ? FLT_MAX
                             : dtype == DType::bf16 ? 0x1.FEp127
                                                    : 65504.0;
      check_bound(dtype, as_type(dtype, {0, largest, largest / 3, least}), bits);
      check_bound(dtype, as_type(dtype, {-largest, 0, -largest / 7, -1}), bits);
      check_bound(dtype, as_type(dtype, {largest, largest / 2, 1}), bits);
      check_bound(dtype, as_type(dtype, {1e-4, 1e4, 1, 100}), bits);
      check_bound(dtype, as_type(dtype, {100, 100.25, 100.5, 101}), bits);
    }
  }
}

BOOST_AUTO_TEST_CASE(restores_what_has_no_more_values_than_codes) {
  std::vector<double> numbers;
  for (int i = 0; i < 256; ++i) numbers.push_back(i - 17);
  for (const DType dtype : kFloats) {
    const RoundTrip trip = round_trip(dtype, as_type(dtype, numbers), 8);
    BOOST_TEST(trip.scale.scale == 1);
    BOOST_TEST(trip.after == trip.before);
    BOOST_TEST(trip.loss.largest_error == 0);
    BOOST_TEST(trip.loss.rms_error() == 0);
  }
}

BOOST_AUTO_TEST_CASE(restores_equal_numbers_and_none_at_all) {
  for (const DType dtype : kFloats) {
    const RoundTrip trip = round_trip(dtype, as_type(dtype, std::vector<double>(70, -0.375)), 1);
    BOOST_TEST(bool(trip.scale == UniformScale{-0.375, 0}));
    BOOST_TEST(trip.codes == std::vector<std::uint8_t>(70, 0));
    BOOST_TEST(trip.after == trip.before);
    BOOST_TEST(bool(uniform_scale(dtype, {}, 4) == UniformScale{}));
  }
}

BOOST_AUTO_TEST_CASE(leaves_out_groups_that_no_parameters_fit) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : kFloats) {
    for (const double strange : {infinity, -infinity, std::nan("")}) {
      for (const std::size_t at : {0, 7, 8, 20}) {
        std::vector<double> numbers(21, 1.5);
        numbers[at] = strange;
        BOOST_TEST(!uniform_scale(dtype, as_type(dtype, numbers), 8));
      }
    }
  }
  // One step from end to end is more than an f32 can say; three are not.
  const std::vector<float> ends = {-FLT_MAX, FLT_MAX};
  BOOST_TEST(!uniform_scale(DType::f32, as_byte_span(ends), 1));
  BOOST_TEST(uniform_scale(DType::f32, as_byte_span(ends), 2).has_value());
  const std::vector<double> far = {-DBL_MAX, DBL_MAX};
  BOOST_TEST(!uniform_scale(DType::f64, as_byte_span(far), 8));
}

BOOST_AUTO_TEST_CASE(gives_parameters_that_the_files_type_can_hold) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    for (unsigned bits = 1; bits <= 8; ++bits) {
      const auto scale = uniform_scale(dtype, as_type(dtype, normal_numbers(100, 0.7, bits)), bits);
      BOOST_TEST(double(float(scale->minimum)) == scale->minimum);
      BOOST_TEST(double(float(scale->scale)) == scale->scale);
    }
  }
}

BOOST_AUTO_TEST_CASE(takes_foreign_numbers_and_parameters_without_harm) {
  const std::vector<float> numbers = {-5, 5, std::nanf(""), HUGE_VALF, -HUGE_VALF, 0.4F};
  std::vector<std::uint8_t> codes(numbers.size());
  codec::quantize(DType::f32, as_byte_span(numbers), 3, {0, 0.1}, codes);
  BOOST_TEST(codes == (std::vector<std::uint8_t>{0, 7, 0, 7, 0, 4}));
  std::vector<float> restored(numbers.size());
  const auto bytes = std::as_writable_bytes(std::span(restored));
  codec::dequantize(DType::f32, codes, {3e38, 3e38}, bytes);
  BOOST_TEST(restored[1] == FLT_MAX);
  codec::dequantize(DType::f32, codes, {std::nan(""), 1}, bytes);
  BOOST_TEST(std::isnan(restored[0]));
}

BOOST_AUTO_TEST_CASE(what_passes_the_largest_number_on_either_side_becomes_that) {
  const std::vector<std::uint8_t> codes = {0, 1, 2, 3};
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const double largest = dtype == DType::f16 ? 65504 : std::ldexp(2 - std::ldexp(1, -7), 127);
    std::vector<std::byte> restored(2 * codes.size());
    // A parameter is an f32, which holds more than the type.
    codec::dequantize(dtype, codes, {-FLT_MAX, FLT_MAX}, restored);
    BOOST_TEST(as_doubles(dtype, restored) == (std::vector<double>{-largest, 0, largest, largest}));
  }
}

BOOST_AUTO_TEST_CASE(refuses_other_widths_types_and_sizes) {
  const std::vector<float> numbers(4, 1.0F);
  std::vector<std::uint8_t> codes(4), few(3);
  const auto group = as_byte_span(numbers);
  const auto code_of = [](auto action) {
    try {
      action();
    } catch (const UsageError& error) {
      return error.code();
    }
    return ErrorCode::io;
  };
  for (const unsigned bits : {0U, 9U, 64U}) {
    BOOST_CHECK(code_of([&] { uniform_scale(DType::f32, group, bits); }) ==
                ErrorCode::bad_argument);
    BOOST_CHECK(code_of([&] { codec::quantize(DType::f32, group, bits, {}, codes); }) ==
                ErrorCode::bad_argument);
  }
  BOOST_CHECK(code_of([&] { uniform_scale(DType::i8, group, 4); }) == ErrorCode::dtype_mismatch);
  BOOST_CHECK(code_of([&] { uniform_scale(DType::f64, group.first(15), 4); }) ==
              ErrorCode::size_mismatch);
  BOOST_CHECK(code_of([&] { codec::quantize(DType::f32, group, 4, {}, few); }) ==
              ErrorCode::size_mismatch);
  std::vector<std::byte> out(12);
  BOOST_CHECK(code_of([&] { codec::dequantize(DType::f32, codes, {}, out); }) ==
              ErrorCode::size_mismatch);
  QuantizationLoss loss;
  BOOST_CHECK(code_of([&] { codec::measure_quantization(DType::f32, group, out, loss); }) ==
              ErrorCode::size_mismatch);
}

BOOST_AUTO_TEST_SUITE_END()
