#include "codec/step/step_cost.h"

#include <cmath>

#include "boost_test.h"

using namespace thalia;
using codec::StepMagnitudes;

BOOST_AUTO_TEST_SUITE(step_cost)

BOOST_AUTO_TEST_CASE(costs_of_frequencies_are_their_logarithms) {
  for (std::uint32_t frequency = 1; frequency <= codec::kStepScale; ++frequency) {
    const double expected = std::log2(double{codec::kStepScale} / frequency);
    const double cost = static_cast<double>(codec::frequency_cost(frequency)) / codec::kBitCost;
    BOOST_REQUIRE_SMALL(cost - expected, 2e-6);
  }
}

BOOST_AUTO_TEST_CASE(the_cheapest_row_is_near_the_entropy) {
  for (const StepMagnitudes& counts : {StepMagnitudes{1000000, 30000, 200, 20, 9, 0, 0, 0, 3},
                                       StepMagnitudes{0, 500, 500, 500, 500, 500, 500, 500, 500},
                                       StepMagnitudes{70000, 900000, 0, 0, 0, 0, 0, 0, 1},
                                       StepMagnitudes{0, 0, 0, 0, 0, 0, 0, 0, 900000},
                                       StepMagnitudes{1, 1, 1, 1, 1, 1, 1, 1, 1}}) {
    const codec::CostedRow chosen = codec::cheapest_row(counts);
    BOOST_TEST(chosen.row.is_present);
    BOOST_TEST(codec::step_rest(chosen.row.row()) >= 1);
    std::uint64_t changed = 0, bits = 1;
    for (std::size_t i = 1; i < counts.size(); ++i)
      if (i != codec::kStepEscape) changed += counts[i];
    for (const codec::StepDigits& digits : chosen.row.digits) bits += digits.bits();
    BOOST_TEST(chosen.cost == codec::row_cost(counts, chosen.row.row()) + bits * codec::kBitCost);
    // The sign takes a bit of each change. A frequency has four digits, and 30,720 at most.
    const double least = static_cast<double>(codec::entropy_cost(counts)) / codec::kBitCost +
                         static_cast<double>(changed);
    const double cost = static_cast<double>(chosen.cost) / codec::kBitCost;
    BOOST_TEST(cost < 1.01 * least + static_cast<double>(bits) + 16 +
                          0.1 * static_cast<double>(counts[codec::kStepEscape]));
  }
}

BOOST_AUTO_TEST_CASE(nothing_changed_takes_a_bit) {
  const codec::CostedRow chosen = codec::cheapest_row({5000});
  BOOST_TEST(!chosen.row.is_present);
  BOOST_TEST(chosen.cost < 6 * codec::kBitCost);
}

BOOST_AUTO_TEST_SUITE_END()
