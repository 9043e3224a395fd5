#include "codec/float/loss.h"

#include <bit>
#include <cmath>
#include <vector>

#include "boost_test.h"
#include "codec/float/samples.h"
#include "support/bytes.h"

using namespace thalia;
using codec::ConversionLoss;
using codec::convert_elements;
using codec::InstructionSet;
using codec::measure_loss;

BOOST_AUTO_TEST_SUITE(float_loss)

namespace {

std::vector<std::byte> converted(DType from, DType to, ByteSpan in) {
  std::vector<std::byte> out(in.size() * 8 / dtype_bits(from) * dtype_bits(to) / 8);
  convert_elements(from, to, in, out);
  return out;
}

ConversionLoss loss_of(DType from, DType to, ByteSpan in,
                       InstructionSet set = codec::fastest_instruction_set()) {
  ConversionLoss loss;
  measure_loss(from, to, in, converted(from, to, in), loss, set);
  return loss;
}

ConversionLoss loss_of(const std::vector<float>& numbers, DType to) {
  return loss_of(DType::f32, to, as_byte_span(numbers));
}

}  // namespace

BOOST_AUTO_TEST_CASE(tells_the_largest_error_and_the_overflows) {
  const float infinity = HUGE_VALF;
  std::vector<float> numbers(3000, 0.5F);
  BOOST_TEST((loss_of(numbers, DType::f16) == ConversionLoss{}));
  numbers[1] = 1 + 0x1p-12F;
  BOOST_TEST(loss_of(numbers, DType::f16).largest_error == 0x1p-12);
  numbers[2999] = -(1 + 0x1p-11F);  // a tie, among the last
  BOOST_TEST(loss_of(numbers, DType::f16).largest_error == 0x1p-11);
  numbers[7] = 65520;
  numbers[2998] = -1e38F;
  numbers[9] = infinity;
  numbers[10] = std::nanf("");
  const ConversionLoss loss = loss_of(numbers, DType::f16);
  BOOST_TEST(loss.infinite == 2u);
  BOOST_TEST(loss.largest_error == 0x1p-11);
  BOOST_TEST(loss_of(numbers, DType::bf16).infinite == 0u);
}

BOOST_AUTO_TEST_CASE(counts_what_vanishes_as_an_error) {
  BOOST_TEST(loss_of({0x1p-26F}, DType::f16).largest_error == 0x1p-26);
  const std::vector<double> tiny(9, 0x1p-1074);
  BOOST_TEST(loss_of(DType::f64, DType::f32, as_byte_span(tiny)).largest_error == 0x1p-1074);
}

BOOST_AUTO_TEST_CASE(counts_what_became_zero_or_subnormal) {
  std::vector<float> numbers(1003, 1);
  numbers[0] = 0x1p-26F;   // less than half of the least f16
  numbers[1] = -0x1p-25F;  // half of it: to the even one, zero
  numbers[2] = 0x1p-24F;
  numbers[3] = -0x1.ff8p-15F;
  numbers[4] = 0x1p-14F;  // the least that is normal
  numbers[5] = 0;
  numbers[6] = -0.0F;
  numbers[1002] = 0x1p-149F;  // among the last, and subnormal before
  ConversionLoss loss = loss_of(numbers, DType::f16);
  BOOST_TEST(loss.zeroed == 3u);
  BOOST_TEST(loss.subnormal == 2u);
  // bf16 has the exponents of f32: what is subnormal there was so before.
  loss = loss_of(numbers, DType::bf16);
  BOOST_TEST(loss.zeroed == 1u);
  BOOST_TEST(loss.subnormal == 0u);
  const std::vector<double> doubles(7, 0x1p-130);
  BOOST_TEST(loss_of(DType::f64, DType::bf16, as_byte_span(doubles)).subnormal == 7u);
}

BOOST_AUTO_TEST_CASE(adds_to_what_was_lost_before) {
  const std::vector<float> first{65520}, second{1 + 0x1p-12F, -1e30F};
  ConversionLoss loss;
  for (const auto& numbers : {first, second}) {
    const ByteSpan in = as_byte_span(numbers);
    measure_loss(DType::f32, DType::f16, in, converted(DType::f32, DType::f16, in), loss);
  }
  BOOST_TEST((loss == ConversionLoss{.infinite = 2, .largest_error = 0x1p-12}));
}

BOOST_AUTO_TEST_CASE(widening_loses_nothing) {
  const auto noise = test::random_bytes(4096);
  for (const auto& [from, to] : {std::pair(DType::f16, DType::f32),
                                 {DType::bf16, DType::f64},
                                 {DType::f32, DType::f64},
                                 {DType::f32, DType::f32}})
    BOOST_TEST((loss_of(from, to, noise) == ConversionLoss{}));
}

BOOST_AUTO_TEST_CASE(every_instruction_set_tells_the_same) {
  for (const DType from : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    std::vector<std::byte> in = test::random_bytes(1 << 16);
    if (dtype_bits(from) > 16) {
      const auto samples = test::elements_of(from, test::rounding_samples(from));
      in.insert(in.end(), samples.begin(), samples.end());
    }
    for (const DType to : {DType::f32, DType::f16, DType::bf16}) {
      // Pieces of odd lengths, so that the largest error is not always that of the largest number.
      for (std::size_t at = 0; at + 6008 <= std::min<std::size_t>(in.size(), 1 << 19); at += 6008) {
        const ByteSpan piece = ByteSpan(in).subspan(at, 6008);
        const ConversionLoss expected = loss_of(from, to, piece, InstructionSet::portable);
        BOOST_TEST((loss_of(from, to, piece) == expected));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
