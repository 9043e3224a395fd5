#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "boost_test.h"
#include "codec/float/conversion.h"

using namespace thalia;
using codec::InstructionSet;
using codec::NumberRange;

BOOST_AUTO_TEST_SUITE(float_sums)

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> numbers(std::size_t count) {
  std::vector<double> out;
  for (std::size_t i = 0; i < count; ++i) {
    const auto x = static_cast<double>(i);
    out.push_back(std::sin(x * x) * std::exp(std::cos(x) * 20));
  }
  return out;
}

// `action` with the kernels of each set that there is.
template <typename Action>
void for_each_set(const Action& action) {
  for (const InstructionSet set : codec::kInstructionSets) {
    if (!codec::has_instruction_set(set)) continue;
    BOOST_TEST_CONTEXT("set " << static_cast<int>(set)) {
      action(codec::float_kernels(set));
    }
  }
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_set_adds_up_to_the_same_bits) {
  const codec::FloatKernels& portable = codec::float_kernels(InstructionSet::portable);
  // One more than a multiple of a vector in front: numbers need no alignment.
  const std::vector<double> all = numbers(1025);
  for (const std::size_t count : {0, 8, 16, 24, 512, 1024}) {
    const double* const from = all.data() + 1;
    NumberRange expected;
    portable.range(from, count, 1e-3, expected);
    const double squares = portable.squares(from, count, 0.125);
    for_each_set([&](const codec::FloatKernels& kernels) {
      NumberRange found;
      kernels.range(from, count, 1e-3, found);
      BOOST_TEST(same_bits(found.sum, expected.sum));
      BOOST_TEST(same_bits(found.min, expected.min));
      BOOST_TEST(same_bits(found.max, expected.max));
      BOOST_TEST(found.below == expected.below);
      BOOST_TEST(same_bits(kernels.squares(from, count, 0.125), squares));
    });
  }
}

BOOST_AUTO_TEST_CASE(are_those_of_the_numbers) {
  const std::vector<double> all = numbers(1024);
  long double sum = 0, squares = 0;
  std::uint64_t below = 0;
  for (const double x : all) {
    sum += x;
    squares += (x - 2.0L) * (x - 2.0L);
    below += std::fabs(x) < 1e-3;
  }
  BOOST_TEST_REQUIRE(below > 0u);
  NumberRange found;
  const codec::FloatKernels& kernels = codec::float_kernels(codec::fastest_instruction_set());
  kernels.range(all.data(), all.size(), 1e-3, found);
  BOOST_TEST(found.min == *std::min_element(all.begin(), all.end()));
  BOOST_TEST(found.max == *std::max_element(all.begin(), all.end()));
  BOOST_TEST(found.below == below);
  const double scale = std::max(-found.min, found.max);
  BOOST_TEST(std::fabs(found.sum - static_cast<double>(sum)) <= 1e-12 * scale);
  const double total = kernels.squares(all.data(), all.size(), 2);
  BOOST_TEST(std::fabs(total - static_cast<double>(squares)) <= 1e-13 * total);
}

BOOST_AUTO_TEST_CASE(nan_spoils_the_sum_and_nothing_else) {
  std::vector<double> few(16, 3);
  few[5] = kNan;
  few[6] = -7;
  few[9] = -0.0;
  for_each_set([&](const codec::FloatKernels& kernels) {
    NumberRange found;
    kernels.range(few.data(), few.size(), 1, found);
    BOOST_TEST(std::isnan(found.sum));
    BOOST_TEST(found.min == -7);
    BOOST_TEST(found.max == 3);
    BOOST_TEST(found.below == 1u);
    few[5] = kInfinity;
    kernels.range(few.data(), few.size(), 1, found);
    BOOST_TEST(found.sum == kInfinity);
    BOOST_TEST(found.max == kInfinity);
    few[5] = kNan;
  });
}

BOOST_AUTO_TEST_CASE(of_no_numbers_the_range_is_empty) {
  for_each_set([](const codec::FloatKernels& kernels) {
    NumberRange found{.sum = 1, .min = 1, .max = 1, .below = 1};
    kernels.range(nullptr, 0, 1, found);
    BOOST_TEST(found.sum == 0);
    BOOST_TEST(found.min == kInfinity);
    BOOST_TEST(found.max == -kInfinity);
    BOOST_TEST(found.below == 0u);
    BOOST_TEST(kernels.squares(nullptr, 0, 1) == 0);
  });
}

BOOST_AUTO_TEST_SUITE_END()
