#include "json/copy.h"

#include <string>

#include "boost_test.h"
#include "support/errors.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(json_copy)

namespace {

std::string copy_of_member(std::string_view text) {
  std::string found;
  json::walk_object(text, 64, [&](std::string_view, json::Value& v) { found = json::copied(v); });
  return found;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_copy_keeps_tokens_order_and_repeated_keys) {
  BOOST_TEST(copy_of_member(
                 R"({"v": {"b" : 1.50, "a":[ true , null, -0e1 ], "b":18446744073709551616}})") ==
             R"({"b":1.50,"a":[true,null,-0e1],"b":18446744073709551616})");
  BOOST_TEST(copy_of_member(R"({"v": "\u0041\u000a\"é"})") == R"("A\n\"é")");
  BOOST_TEST(copy_of_member(R"({"v": []})") == "[]");
  BOOST_TEST(copy_of_member(R"({"v": {}})") == "{}");
}

BOOST_AUTO_TEST_CASE(canonical_texts_are_equal_where_only_order_space_and_escapes_differ) {
  const std::string one = json::canonical_object(R"({"b": [{"y":1,"x":2}], "a": "\u0041"})", 64);
  BOOST_TEST(one == R"({"a":"A","b":[{"x":2,"y":1}]})");
  BOOST_TEST(json::canonical_object(R"({"a":"A","b":[{"x":2,"y":1}]})", 64) == one);
  // If several members have one key, the last counts.
  BOOST_TEST(json::canonical_object(R"({"a":0,"b":[{"x":3,"y":1,"x":2}],"a":"A"})", 64) == one);
  BOOST_TEST(json::canonical_object(R"({"a":"A","b":[{"x":2.0,"y":1}]})", 64) != one);
  // The order of elements means something.
  BOOST_TEST(json::canonical_object(R"({"a":[1,2]})", 64) !=
             json::canonical_object(R"({"a":[2,1]})", 64));
}

BOOST_AUTO_TEST_CASE(members_are_those_of_the_object_in_order_the_last_of_a_key) {
  const json::Members expected{{"z", "3"}, {"a", R"([{"z":1}])"}};
  BOOST_TEST((json::members_of(R"({"z": 1, "a": [{"z": 1}], "z": 3})", 64) == expected));
  BOOST_TEST(json::members_of("{}", 64).empty());
}

BOOST_AUTO_TEST_CASE(depth_is_bounded) {
  BOOST_CHECK_EXCEPTION(json::members_of(R"({"a":[[[]]]})", 3), FormatError,
                        has_code(ErrorCode::limit_exceeded));
  BOOST_CHECK_EXCEPTION(json::canonical_object(R"({"a":[[[]]]})", 3), FormatError,
                        has_code(ErrorCode::limit_exceeded));
  BOOST_TEST(json::members_of(R"({"a":[[[]]]})", 4).size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
