#include "format/extent.h"

#include "boost_test.h"

using namespace thalia::format;

BOOST_AUTO_TEST_SUITE(extent)

BOOST_AUTO_TEST_CASE(an_extent_that_wraps_lies_nowhere) {
  BOOST_TEST(!extent_end({UINT64_MAX, 1}));
  BOOST_TEST(!lies_within({UINT64_MAX - 3, 8}, 0, UINT64_MAX));
}

BOOST_AUTO_TEST_CASE(bounds_are_half_open) {
  BOOST_TEST(lies_within({4, 4}, 4, 8));
  BOOST_TEST(!lies_within({4, 5}, 4, 8));
  BOOST_TEST(!lies_within({3, 1}, 4, 8));
  BOOST_TEST(lies_within({8, 0}, 4, 8));
  BOOST_TEST(!lies_within({9, 0}, 4, 8));
}

BOOST_AUTO_TEST_CASE(align_up_keeps_multiples) {
  BOOST_TEST(align_up(0, 64) == 0u);
  BOOST_TEST(align_up(64, 64) == 64u);
  BOOST_TEST(align_up(65, 64) == 128u);
}

BOOST_AUTO_TEST_SUITE_END()
