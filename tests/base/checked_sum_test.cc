#include "base/checked_sum.h"

#include "boost_test.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(checked_sum)

BOOST_AUTO_TEST_CASE(a_sum_that_passes_2_64_has_no_value_any_more) {
  CheckedSum sum;
  sum += UINT64_MAX - 1;
  sum += 1;
  BOOST_TEST((sum.value() == UINT64_MAX));
  BOOST_TEST(sum.to_string() == "18446744073709551615");
  CheckedSum more;
  more += 5;
  more += sum;
  BOOST_TEST(!more.value());
  more += 0;
  BOOST_TEST(!more.value());
  CheckedSum last;
  last += more;
  BOOST_TEST(!last.value());
  BOOST_TEST(last.to_string() == "more than 2^64 - 1");
}

BOOST_AUTO_TEST_SUITE_END()
