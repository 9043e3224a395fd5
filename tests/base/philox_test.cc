#include "base/philox.h"

#include "boost_test.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(philox_numbers)

// Known answers: the lines "philox4x32 10" of tests/kat_vectors in the Random123 distribution,
// release 1.14.0, github.com/DEShawResearch/random123.
BOOST_AUTO_TEST_CASE(known_answers_of_random123_hold) {
  constexpr std::uint32_t kOnes = 0xffffffff;
  BOOST_TEST((philox({0, 0, 0, 0}, {0, 0}) ==
              PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  BOOST_TEST((philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}) ==
              PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  BOOST_TEST((philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

BOOST_AUTO_TEST_CASE(unit_interval_ends_below_one) {
  BOOST_TEST(unit_interval(0, 0x7ff) == 0.0);
  BOOST_TEST(unit_interval(0, 0x800) == 0x1p-53);
  BOOST_TEST(unit_interval(0x80000000, 0) == 0.5);
  BOOST_TEST(unit_interval(0xffffffff, 0xffffffff) == 1 - 0x1p-53);
}

BOOST_AUTO_TEST_SUITE_END()
