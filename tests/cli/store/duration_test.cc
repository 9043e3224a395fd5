#include "cli/store/duration.h"

#include <cstdint>
#include <string>

#include "boost_test.h"

using namespace thalia::cli;

BOOST_AUTO_TEST_SUITE(duration)

BOOST_AUTO_TEST_CASE(units_are_those_that_people_write) {
  BOOST_TEST(parse_duration("90").value() == 90u);
  BOOST_TEST(parse_duration("90s").value() == 90u);
  BOOST_TEST(parse_duration("30min").value() == 1800u);
  BOOST_TEST(parse_duration("12h").value() == 43200u);
  BOOST_TEST(parse_duration("7d").value() == 604800u);
  BOOST_TEST(parse_duration("2w").value() == 1209600u);
}

BOOST_AUTO_TEST_CASE(what_is_no_duration_is_none) {
  for (const char* const text : {"", "d", "0", "0d", "-1d", "+1d", "1 d", " 1d", "1.5h", "1day",
                                 "1m", "1dd", "99999999999999999999", "30500568904944w"})
    BOOST_TEST(!parse_duration(text), text);
}

BOOST_AUTO_TEST_CASE(text_has_one_unit) {
  BOOST_TEST(duration_text(0) == "0 s");
  BOOST_TEST(duration_text(119) == "119 s");
  BOOST_TEST(duration_text(120) == "2 min");
  BOOST_TEST(duration_text(7199) == "119 min");
  BOOST_TEST(duration_text(7200) == "2 h");
  BOOST_TEST(duration_text(172799) == "47 h");
  BOOST_TEST(duration_text(172800) == "2 d");
}

BOOST_AUTO_TEST_SUITE_END()
