#include "base/utf8.h"

#include <string>

#include "boost_test.h"

using namespace thalia;
using namespace std::string_literals;

BOOST_AUTO_TEST_SUITE(utf8)

// The Unicode Standard, table 3-7: first and last code point of each row, and their neighbours
// outside.
BOOST_AUTO_TEST_CASE(well_formed_sequences_are_accepted) {
  for (const std::string& text :
       {""s, "\0"s, "\x7F"s, "\xC2\x80"s, "\xDF\xBF"s, "\xE0\xA0\x80"s, "\xED\x9F\xBF"s,
        "\xEE\x80\x80"s, "\xEF\xBF\xBF"s, "\xF0\x90\x80\x80"s, "\xF4\x8F\xBF\xBF"s}) {
    BOOST_TEST(is_valid_utf8(text));
  }
}

BOOST_AUTO_TEST_CASE(ill_formed_sequences_are_found_where_they_start) {
  for (const std::string& text :
       {"\x80"s, "\xC1\xBF"s, "\xC2"s, "\xC2\x7F"s, "\xE0\x9F\xBF"s, "\xED\xA0\x80"s, "\xE1\x80"s,
        "\xF0\x8F\xBF\xBF"s, "\xF4\x90\x80\x80"s, "\xF5\x80\x80\x80"s, "\xFF"s}) {
    BOOST_TEST(find_invalid_utf8("ab" + text) == 2u);
  }
}

BOOST_AUTO_TEST_CASE(prefix_never_splits_a_character) {
  BOOST_TEST(utf8_prefix("aé", 2) == "a");
  BOOST_TEST(utf8_prefix("aé", 3) == "aé");
  BOOST_TEST(utf8_prefix("𝄞", 3) == "");
}

BOOST_AUTO_TEST_CASE(printable_escapes_controls_and_broken_bytes) {
  BOOST_TEST(printable("a\n\x1b\xFFé\\") == "a\\n\\x1b\\xffé\\");
  BOOST_TEST(printable("abcdef", 3) == "abc…");
  BOOST_TEST(printable("ab\n", 3) == "ab…");
}

// C1 controls move a cursor as C0 ones do; bidirectional ones let a name look like another.
BOOST_AUTO_TEST_CASE(printable_escapes_what_reorders_or_hides) {
  BOOST_TEST(printable("\xc2\x9b"
                       "31m") == "\\u009b31m");
  for (const std::string& text : {"\xd8\x9c"s, "\xe2\x80\x8e"s, "\xe2\x80\xa8"s, "\xe2\x80\xae"s,
                                  "\xe2\x81\xa6"s, "\xef\xbb\xbf"s}) {
    BOOST_TEST(printable(text).starts_with("\\u"));
    BOOST_TEST(printable(printable(text)) == printable(text));
  }
}

BOOST_AUTO_TEST_SUITE_END()
