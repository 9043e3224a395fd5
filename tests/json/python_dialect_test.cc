// Texts as Python's json module writes them. Expected values are what json.loads of CPython 3.11
// gives, strings encoded with errors="surrogatepass".
#include <string>
#include <utility>
#include <vector>

#include "boost_test.h"
#include "json/reader.h"
#include "support/errors.h"

using namespace thalia;
using json::Dialect;
using json::Kind;
using test::expect;

BOOST_AUTO_TEST_SUITE(python_dialect)

namespace {

using Tokens = std::vector<std::pair<std::string, std::string>>;

// Name and token, or decoded string, of each member.
Tokens read(std::string_view text, Dialect dialect = Dialect::python) {
  Tokens seen;
  json::walk_object(
      text, 16,
      [&](std::string_view name, json::Value& value) {
        const bool is_string = value.kind() == Kind::string;
        seen.emplace_back(name, is_string ? value.string() : value.token());
      },
      dialect);
  return seen;
}

void require_refused(const std::string& text) {
  BOOST_TEST_CONTEXT(text) {
    expect<FormatError>([&] { read(text); }, ErrorCode::bad_json);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(reads_numbers_that_json_has_not) {
  const Tokens expected = {
      {"a", "NaN"}, {"b", "Infinity"}, {"c", "-Infinity"}, {"d", "-0.0"}, {"e", "1e+400"}};
  BOOST_TEST((read(R"({"a":NaN , "b": Infinity,"c":-Infinity
,"d":-0.0,"e":1e+400})") == expected));
}

BOOST_AUTO_TEST_CASE(reads_them_in_arrays_that_nobody_takes) {
  BOOST_TEST(
      (read(R"({"a":[NaN,[-Infinity],{"b":Infinity}],"c":1})") == Tokens{{"a", ""}, {"c", "1"}}));
}

BOOST_AUTO_TEST_CASE(the_other_dialect_refuses_them) {
  expect<FormatError>([] { read(R"({"a":NaN})", Dialect::rfc8259); }, ErrorCode::bad_json);
  expect<FormatError>([] { read(R"({"a":"\ud800"})", Dialect::rfc8259); }, ErrorCode::bad_json);
}

BOOST_AUTO_TEST_CASE(refuses_words_that_look_like_them) {
  for (const char* token : {"nan", "NAN", "NaNx", "Na", "-NaN", "+Infinity", "Inf", "-Inf",
                            "Infinity1", "--Infinity", "01", "1.", "True", "None"}) {
    require_refused(std::string("{\"a\":") + token + "}");
    require_refused(std::string("{\"a\":[") + token + "]}");
  }
}

BOOST_AUTO_TEST_CASE(keeps_lone_surrogates) {
  const Tokens expected = {{"\xED\xA0\x80", "\xED\xB0\x80"},
                           {"pair", "\xF0\x9F\x98\x80"},
                           {"high, then a letter",
                            "\xED\xA0\xBD"
                            "A"},
                           {"two high, one low", "\xED\xA0\xBD\xF0\x9F\x98\x80"},
                           {"low, then high", "\xED\xB8\x80\xED\xA0\xBD"}};
  BOOST_TEST((read(R"({"\ud800":"\udc00","pair":"\ud83d\uDE00",
    "high, then a letter":"\ud83d\u0041","two high, one low":"\ud83d\ud83d\ude00",
    "low, then high":"\ude00\ud83d"})") == expected));
}

BOOST_AUTO_TEST_CASE(decodes_every_escape) {
  BOOST_TEST((read(R"({"k\"\\":"\"\\\/\b\f\n\r\t\u0000\u007f\u00e9\u20ac","plain":"é\\"})") ==
              Tokens{{"k\"\\", std::string("\"\\/\b\f\n\r\t\0\x7f\xC3\xA9\xE2\x82\xAC", 15)},
                     {"plain", "\xC3\xA9\\"}}));
}

BOOST_AUTO_TEST_CASE(refuses_bad_strings) {
  for (const char* body : {"\\x", "\\u12", "\\u12g4", "\\u-123", "\\ud83d\\u12", "\n", "\x01",
                           "\x80", "\xED\xA0\x80", "\\"}) {
    require_refused(std::string("{\"a\":\"") + body + "\"}");
    require_refused(std::string("{\"") + body + "\":1}");
  }
}

BOOST_AUTO_TEST_CASE(every_truncation_is_refused) {
  const std::string text = R"({"a":[NaN,-Infinity,{"b":"\ud83d\n"},"\\"],"c":Infinity})";
  read(text);
  for (std::size_t length = 0; length < text.size(); ++length) {
    require_refused(text.substr(0, length));
  }
}

BOOST_AUTO_TEST_SUITE_END()
