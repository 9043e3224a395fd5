// The long version of crash_test.cc: some hundred kills.
#include "boost_test.h"
#include "container/write/crash_check.h"

// Runs if it is named, in the slow suite.
BOOST_AUTO_TEST_SUITE(crash_sweep, *boost::unit_test::disabled())

BOOST_AUTO_TEST_CASE(hundreds_of_kills_leave_the_old_file_or_the_new) {
  thalia::test::check_random_kills(600);
}

BOOST_AUTO_TEST_SUITE_END()
