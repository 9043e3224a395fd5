#include <string>

#include "boost_test.h"
#include "support/errors.h"
#include "thalia/value.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(value_json)

BOOST_AUTO_TEST_CASE(compact_text_comes_back_byte_for_byte) {
  const std::string text =
      R"({"b":1,"a":[true,false,null,-0.0,1e400,12345678901234567890123,"\u0001é\"\\"],"":{}})";
  BOOST_TEST(to_json(parse_json(text)) == text);
}

BOOST_AUTO_TEST_CASE(of_a_name_that_occurs_twice_the_last_value_counts) {
  BOOST_TEST(to_json(parse_json(R"({"a":1,"b":2,"a":3})")) == R"({"a":3,"b":2})");
}

BOOST_AUTO_TEST_CASE(depth_and_bytes_are_limited) {
  expect<FormatError>([] { parse_json(R"({"a":{"b":{}}})", {.max_json_depth = 2}); },
                      ErrorCode::limit_exceeded);
  expect<FormatError>([] { parse_json(R"({"a":1})", {.max_json_bytes = 6}); },
                      ErrorCode::limit_exceeded);
}

BOOST_AUTO_TEST_CASE(what_json_cannot_hold_is_refused_with_its_path) {
  Value value;
  value["a"] = Value::array();
  value["a"].push_back(Value::number("-Infinity"));
  BOOST_TEST(expect<UsageError>([&] { to_json(value); }, ErrorCode::bad_argument).context().field ==
             "a[0]");
  Value tensor;
  tensor["x"]["t"] = Tensor();
  BOOST_TEST(
      expect<UsageError>([&] { to_json(tensor); }, ErrorCode::bad_argument).context().field ==
      "x.t");
}

BOOST_AUTO_TEST_SUITE_END()
