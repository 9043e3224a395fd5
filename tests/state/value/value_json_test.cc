#include <bit>
#include <cmath>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <string_view>

#include "boost_test.h"
#include "support/errors.h"
#include "thalia/state/value.h"

using namespace thalia;
using namespace thalia::test;
using namespace std::string_view_literals;

BOOST_AUTO_TEST_SUITE(value_json)

BOOST_AUTO_TEST_CASE(compact_text_comes_back_byte_for_byte) {
  const std::string text =
      R"({"b":1,"a":[true,false,null,-0.0,1e400,12345678901234567890123,"\u0001é\"\\"],"":{}})";
  BOOST_TEST(to_json(parse_json(text)) == text);
}

BOOST_AUTO_TEST_CASE(a_text_may_be_any_value) {
  for (const char* text :
       {"[1,2]", "3", "null", "true", "false", "\"x\"", "-0.0", "[]", "{}", "[[],{\"a\":[]}]"})
    BOOST_TEST(to_json(parse_json(text)) == text);
  BOOST_TEST(parse_json(" \n[ 1 ,\t2 ]\r ").size() == 2);
  for (const char* text : {"",
                           " ",
                           "1,",
                           "1,2",
                           "1 2",
                           "1]",
                           "[1",
                           "]",
                           "][",
                           "1],[2",
                           "[1,]",
                           "01",
                           "nul",
                           "nulll",
                           "NaN",
                           "\"a",
                           "\"a\"b",
                           "'a'",
                           "{",
                           "}",
                           "{}{}",
                           "[1]{}",
                           "\xEF\xBB\xBF"
                           "1",
                           "\xFF"})
    BOOST_CHECK_EXCEPTION(parse_json(text), FormatError, has_code(ErrorCode::bad_json));
}

// Every value without tensors, and numbers that JSON has, comes back from its text.
BOOST_AUTO_TEST_CASE(what_is_written_reads_back_as_an_equal_value) {
  std::mt19937_64 random(23);
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  const auto text = [&] {
    const std::string_view pieces[]{"a", "\"",         "\\", "\n",   "\0"sv,
                                    "é", "\U0001F9E0", ".",  "\x7f", "/"};
    std::string made;
    for (std::uint64_t n = below(4); n > 0; --n) made += pieces[below(std::size(pieces))];
    return made;
  };
  const auto number = [&]() -> Value {
    switch (below(5)) {
      case 0:
        return static_cast<std::int64_t>(random());
      case 1:
        return random();
      case 2:
        return Value::number("-1234567890123456789012345678901234567890.5e-0400");
      case 3:
        return static_cast<double>(static_cast<std::int64_t>(random())) * 1e-19;
      default:
        break;
    }
    const double any = std::bit_cast<double>(random());
    return std::isfinite(any) ? any : 0.0;
  };
  const std::function<Value(unsigned)> value = [&](unsigned depth) -> Value {
    const std::uint64_t kind = below(depth == 0 ? 4 : 6);
    if (kind == 0) return {};
    if (kind == 1) return below(2) == 0;
    if (kind == 2) return number();
    if (kind == 3) return text();
    Value made = kind == 4 ? Value::array() : Value::object();
    for (std::uint64_t n = below(5); n > 0; --n) {
      if (kind == 4) {
        made.push_back(value(depth - 1));
      } else {
        made[text()] = value(depth - 1);
      }
    }
    return made;
  };
  for (int round = 0; round < 2000; ++round) {
    const Value made = value(5);
    const std::string json = to_json(made);
    BOOST_REQUIRE_MESSAGE(parse_json(json) == made, json);
    BOOST_REQUIRE(to_json(parse_json(json)) == json);
  }
}

BOOST_AUTO_TEST_CASE(of_a_name_that_occurs_twice_the_last_value_counts) {
  BOOST_TEST(to_json(parse_json(R"({"a":1,"b":2,"a":3})")) == R"({"a":3,"b":2})");
}

BOOST_AUTO_TEST_CASE(depth_and_bytes_are_limited) {
  expect<FormatError>([] { parse_json(R"({"a":{"b":{}}})", {.max_json_depth = 2}); },
                      ErrorCode::limit_exceeded);
  BOOST_TEST(parse_json("[[1]]", {.max_json_depth = 2}).size() == 1);
  expect<FormatError>([] { parse_json("[[[1]]]", {.max_json_depth = 2}); },
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
