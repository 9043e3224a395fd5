#include "cli/terminal/escape.h"

#include <string>

#include "boost_test.h"

using namespace thalia::cli;

BOOST_AUTO_TEST_SUITE(escaping)

BOOST_AUTO_TEST_CASE(names_show_nothing_that_moves_the_cursor) {
  BOOST_TEST(escape("a\nb\x1b[31m") == "a\\nb\\x1b[31m");
  BOOST_TEST(escape("caf\xc3\xa9 \xe2\x80\xae") == "caf\xc3\xa9 \\u202e");
  BOOST_TEST(escape("\xc2\x85") == "\\u0085");
  BOOST_TEST(escape("\xff\xc3") == "\\xff\\xc3");
  BOOST_TEST(escape("\xed\xa0\x80") == "\\xed\\xa0\\x80");
  BOOST_TEST(escape("a\\b") == "a\\b");
  BOOST_TEST(escape_name("a\\b") == "a\\\\b");
}

BOOST_AUTO_TEST_CASE(every_byte_pair_comes_back_from_its_escape) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string name{static_cast<char>(first), static_cast<char>(second)};
      BOOST_TEST_REQUIRE((unescape_name(escape_name(name)) == name));
    }
  }
  BOOST_TEST(unescape_name("\\q\\") == "\\q\\");
  BOOST_TEST(unescape_name(escape_name("\xe2\x80\xae|")) == "\xe2\x80\xae|");
}

BOOST_AUTO_TEST_CASE(json_gets_utf8_whatever_comes) {
  BOOST_TEST(as_utf8("a\nb \xc3\xa9") == "a\nb \xc3\xa9");
  BOOST_TEST(as_utf8("a\n\xff") == "a\\n\\xff");
}

BOOST_AUTO_TEST_CASE(width_counts_columns) {
  BOOST_TEST(display_width("abc") == 3u);
  BOOST_TEST(display_width("caf\xc3\xa9") == 4u);
  BOOST_TEST(display_width("\xe6\xbc\xa2") == 2u);
  BOOST_TEST(display_width("e\xcc\x81") == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
