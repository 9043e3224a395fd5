#include "formats/source/field_cursor.h"

#include <string>

#include "boost_test.h"
#include "support/errors.h"

using namespace thalia;
using formats::FieldCursor;

BOOST_AUTO_TEST_SUITE(field_cursor)

BOOST_AUTO_TEST_CASE(fields_are_taken_one_behind_the_other) {
  const std::string bytes(
      "\x01\x02\x03\x00\x00\x00\x00\x00\x80\x3f"
      "abc",
      13);
  FieldCursor cursor("header", as_byte_span(bytes), 100);
  BOOST_TEST(cursor.number<std::uint8_t>("a") == 1);
  BOOST_TEST(cursor.number<std::uint16_t>("b") == 0x0302);
  BOOST_TEST(cursor.number<std::int32_t>("c") == 0);
  cursor = FieldCursor("header", as_byte_span(bytes).subspan(6), 106);
  BOOST_TEST(cursor.number<float>("d") == 1.0f);
  BOOST_TEST(cursor.offset() == 110u);
  BOOST_TEST(cursor.left() == 3u);
  BOOST_TEST(cursor.text(3, "e") == "abc");
  BOOST_TEST(cursor.left() == 0u);
  BOOST_TEST(cursor.take(0, "f").empty());
}

BOOST_AUTO_TEST_CASE(none_is_taken_past_the_end) {
  const std::string bytes = "abcdef";
  FieldCursor cursor("header", as_byte_span(bytes), 100);
  cursor.take(4, "a");
  cursor.enter("index");
  for (const std::uint64_t length : {std::uint64_t{3}, UINT64_MAX}) {
    BOOST_CHECK_EXCEPTION(
        cursor.take(length, "name"), FormatError,
        test::says(ErrorCode::truncated, "index.name at offset 104",
                   "got " + std::to_string(length) + " bytes, expected at most 2, what is left"));
  }
  BOOST_CHECK_THROW(cursor.number<std::uint32_t>("n"), FormatError);
  BOOST_TEST(cursor.text(2, "rest") == "ef");
}

BOOST_AUTO_TEST_SUITE_END()
