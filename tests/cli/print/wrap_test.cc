#include "cli/print/wrap.h"

#include "boost_test.h"

using thalia::cli::wrapped;

BOOST_AUTO_TEST_SUITE(wrap)

BOOST_AUTO_TEST_CASE(lines_hold_as_many_words_as_fit) {
  BOOST_TEST(wrapped("one two three four", 9) == "one two\nthree\nfour");
  BOOST_TEST(wrapped("one two three four", 13) == "one two three\nfour");
  BOOST_TEST(wrapped("one two", 7) == "one two");
  BOOST_TEST(wrapped("", 7) == "");
}

BOOST_AUTO_TEST_CASE(words_that_are_too_long_stand_alone) {
  BOOST_TEST(wrapped("incomprehensibilities are one", 5) == "incomprehensibilities\nare\none");
  BOOST_TEST(wrapped("so incomprehensibilities", 5) == "so\nincomprehensibilities");
}

BOOST_AUTO_TEST_CASE(breaks_and_indented_lines_stay) {
  BOOST_TEST(wrapped("a b\n\nc d e\n  f g h i", 3) == "a b\n\nc d\ne\n  f g h i");
}

BOOST_AUTO_TEST_SUITE_END()
