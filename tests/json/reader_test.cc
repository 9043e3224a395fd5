#include "json/reader.h"

#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "boost_test.h"
#include "thalia/error.h"

using namespace thalia;
using json::Kind;

BOOST_AUTO_TEST_SUITE(json_reader)

namespace {

// The error that a text is refused with, as "code: text"; "good" if it is not refused.
std::string verdict(std::string_view text, unsigned max_depth = 16) {
  try {
    json::check_object(text, max_depth);
    return "good";
  } catch (const FormatError& error) {
    return std::string(error_code_name(error.code())) + ": " + error.what();
  }
}

bool refused(std::string_view text) {
  return verdict(text).rfind("bad_json: ", 0) == 0;
}

std::string nested(std::size_t arrays) {
  return "{\"a\":" + std::string(arrays, '[') + std::string(arrays, ']') + "}";
}

}  // namespace

BOOST_AUTO_TEST_CASE(accepts_every_kind_of_value) {
  for (const char* text :
       {"{}", " \t\r\n{ } \n", R"({"a":1,"a":2})", R"({"":[],"b":{},"c":[[],{}]})",
        R"({"a":[true,false,null,"x",0,-0,-1,1.5,1e5,1E+5,1.25e-7]})",
        R"({"big":123456789012345678901234567890,"huge":1e999})",
        R"({"e":"\"\\\/\b\f\n\r\t\u0000\u00e9\ud83d\ude00"})", "{\"k\\u0041\":\"\xC3\xA9\"}"}) {
    BOOST_TEST_CONTEXT(text) {
      BOOST_TEST(verdict(text) == "good");
    }
  }
}

BOOST_AUTO_TEST_CASE(refuses_what_is_no_json_object) {
  for (std::string_view text :
       {std::string_view(""), std::string_view("   "), std::string_view("null"),
        std::string_view("[]"), std::string_view("1"), std::string_view("\"a\""),
        std::string_view("{"), std::string_view("}"), std::string_view("{}{}"),
        std::string_view("{}]"), std::string_view("{} x"), std::string_view("\xEF\xBB\xBF{}"),
        std::string_view("{\0}", 3), std::string_view("{}\0", 3), std::string_view("x{}"),
        std::string_view("{\"a\":1}}"), std::string_view("{}\"}")}) {
    BOOST_TEST_CONTEXT(text) {
      BOOST_TEST(refused(text));
    }
  }
}

BOOST_AUTO_TEST_CASE(refuses_misplaced_punctuation) {
  for (const char* text :
       {R"({"a"})",          R"({"a":})",     R"({"a":1,})",   R"({,"a":1})",    R"({"a":1 "b":2})",
        R"({"a" 1})",        R"({"a":[1,]})", R"({"a":[,1]})", R"({"a":[1 2]})", R"({"a":[1}})",
        R"({"a":{]})",       R"({a:1})",      R"({'a':1})",    R"({1:1})",       R"({"a"::1})",
        R"({"a":1,,"b":2})", R"({"a":[)",     R"({"a":[[1]})", R"({"a":1]})",    R"({"a":"x""y"})",
        R"({"a":1/**/})",    R"([{]})"}) {
    BOOST_TEST_CONTEXT(text) {
      BOOST_TEST(refused(text));
    }
  }
}

BOOST_AUTO_TEST_CASE(refuses_bad_numbers_and_words) {
  for (const char* token :
       {"01",   "-",   "+1",    "1.",     ".5",        "1e",        "1e+", "0x10",
        "1a",   "--1", "-01",   "NaN",    "Infinity",  "-Infinity", "tru", "truex",
        "True", "nul", "nulll", "falsey", "undefined", "1.2.3"}) {
    BOOST_TEST_CONTEXT(token) {
      BOOST_TEST(refused(std::string("{\"a\":") + token + "}"));
      BOOST_TEST(refused(std::string("{\"a\":[") + token + "]}"));
    }
  }
}

BOOST_AUTO_TEST_CASE(refuses_bad_strings) {
  for (const char* body :
       {"\\x", "\\u12", "\\u12g4", "\\ud800", "\\udc00", "\\ud800\\u0041", "\\ud800x", "\n", "\x01",
        "\x80", "\xC3", "\xED\xA0\x80", "\xC0\x80", "\xF4\x90\x80\x80", "\\"}) {
    BOOST_TEST_CONTEXT(body) {
      BOOST_TEST(refused(std::string("{\"a\":\"") + body + "\"}"));
      BOOST_TEST(refused(std::string("{\"") + body + "\":1}"));
    }
  }
}

BOOST_AUTO_TEST_CASE(depth_is_limited_by_the_caller_and_by_the_ceiling) {
  BOOST_TEST(verdict(nested(15)) == "good");
  BOOST_TEST(verdict(nested(16)) ==
             "limit_exceeded: limit max_json_depth exceeded, raise it to read this file: got 17, "
             "expected at most 16");
  BOOST_TEST(verdict(nested(1023), 1u << 30) == "good");
  BOOST_TEST(verdict(nested(1024), 1u << 30).rfind("limit_exceeded", 0) == 0);
  BOOST_TEST(verdict(nested(1000000), 1u << 30).rfind("limit_exceeded", 0) == 0);
}

BOOST_AUTO_TEST_CASE(message_says_what_is_wrong_and_where) {
  BOOST_TEST(verdict(R"({"a":01})") == "bad_json: bad JSON: '01' is no value, near byte 5 of 8");
  BOOST_TEST(verdict("[]") == "bad_json: bad JSON: the text is no object, near byte 0 of 2");
  BOOST_TEST(verdict("{\"\xFF\":1}") == "bad_json: bad JSON: the text is not UTF-8");
}

BOOST_AUTO_TEST_CASE(message_quotes_a_long_token_without_cutting_a_character) {
  std::string token = "12";
  for (int i = 0; i < 30; ++i) token += "\xE6\xBC\xA2";
  const std::string text = verdict("{\"a\":" + token + "}");
  BOOST_TEST(text.starts_with("bad_json: bad JSON: '12\xE6\xBC\xA2"));
  BOOST_TEST(is_valid_utf8(text));
  BOOST_TEST(text.size() < 100u);
}

BOOST_AUTO_TEST_CASE(every_truncation_is_refused) {
  const std::string text = R"({"a":[1,2.5e3,{"b":"\u00e9\n"},[],{}],"c":null,"d":true})";
  BOOST_TEST(verdict(text) == "good");
  for (std::size_t length = 0; length < text.size(); ++length) {
    BOOST_TEST_CONTEXT(length) {
      BOOST_TEST(refused(text.substr(0, length)));
    }
  }
}

BOOST_AUTO_TEST_CASE(walk_gives_members_in_order_and_decoded) {
  std::vector<std::pair<std::string, std::string>> seen;
  std::vector<std::uint64_t> numbers;
  json::walk_object(
      R"({"z":"\u0041\n","n":[1,18446744073709551615],"z":"","o":{"i":"in"}, "k\"":null})", 8,
      [&](std::string_view key, json::Value& value) {
        seen.emplace_back(key, json::kind_name(value.kind()));
        if (value.kind() == Kind::string) seen.back().second = value.string();
        if (value.kind() == Kind::array) {
          value.for_each_element(
              [&](json::Value& element) { numbers.push_back(element.unsigned_integer().value()); });
        }
        if (value.kind() == Kind::object) {
          value.for_each_member([&](std::string_view inner, json::Value& text) {
            seen.emplace_back(inner, text.string());
          });
        }
      });
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"z", "A\n"}, {"n", "array"}, {"z", ""}, {"o", "object"}, {"i", "in"}, {"k\"", "null"}};
  BOOST_TEST((seen == expected));
  BOOST_TEST(numbers == (std::vector<std::uint64_t>{1, 18446744073709551615u}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(unsigned_integer_takes_whole_numbers_of_64_bits_only) {
  for (const char* token : {"-1", "-0", "1.0", "1e3", "18446744073709551616"}) {
    json::walk_object(std::string("{\"a\":") + token + "}", 8,
                      [&](std::string_view, json::Value& value) {
                        BOOST_TEST(!value.unsigned_integer().has_value());
                        BOOST_TEST(value.token() == token);
                      });
  }
}

BOOST_AUTO_TEST_CASE(values_left_untaken_are_checked) {
  const auto ignore = [](std::string_view, json::Value&) {};
  BOOST_CHECK_THROW(json::walk_object(R"({"a":{"b":[1,{"c":01}]}})", 8, ignore), FormatError);
  BOOST_CHECK_THROW(json::walk_object(R"({"a":{"b":["\x"]}})", 8, ignore), FormatError);
  BOOST_CHECK_THROW(json::walk_object(R"({"a":[[[]]]})", 3, ignore), FormatError);
}

BOOST_AUTO_TEST_CASE(a_value_taken_for_another_kind_is_the_fault_of_the_text) {
  const auto takes = [](const char* text, const auto& take) {
    json::walk_object(text, 8, [&](std::string_view, json::Value& value) { take(value); });
  };
  for (const char* text : {R"({"a":1})", R"({"a":true})", R"({"a":null})", R"({"a":[[]]})"}) {
    BOOST_CHECK_THROW(takes(text, [](json::Value& value) { value.string(); }), FormatError);
    BOOST_CHECK_THROW(takes(text, [](json::Value& value) { value.for_each_member({}); }),
                      FormatError);
  }
  for (const char* text : {R"({"a":1})", R"({"a":"1"})", R"({"a":{}})"}) {
    BOOST_CHECK_THROW(takes(text, [](json::Value& value) { value.for_each_element({}); }),
                      FormatError);
  }
  takes(R"({"a":"1","b":[1],"c":{},"d":true})",
        [](json::Value& value) { BOOST_TEST(!value.unsigned_integer().has_value()); });
}

BOOST_AUTO_TEST_CASE(exception_of_the_visitor_passes_through) {
  BOOST_CHECK_THROW(json::walk_object(R"({"a":1})", 8,
                                      [](std::string_view, json::Value&) {
                                        throw UsageError(ErrorCode::not_found, "mine");
                                      }),
                    UsageError);
}

BOOST_AUTO_TEST_SUITE_END()
