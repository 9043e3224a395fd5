#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "boost_test.h"
#include "json/reader.h"
#include "json/writer.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(json_writer)

namespace {

std::string string_text(std::string_view value) {
  std::string text;
  JsonWriter(text).value(value);
  return text;
}

template <typename T>
std::string number_text(T value) {
  std::string text;
  JsonWriter(text).value(value);
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(nests_compactly_with_commas_where_they_belong) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("a", 1).member("b", "x").key("c").begin_array();
  json.begin_array().end_array().begin_object().end_object().value(true).null().value(-2);
  json.end_array().key("d").begin_object().member("e", 0.5).end_object().key("f").raw("{\"r\":1}");
  json.end_object();
  BOOST_TEST(text == R"({"a":1,"b":"x","c":[[],{},true,null,-2],"d":{"e":0.5},"f":{"r":1}})");
}

BOOST_AUTO_TEST_CASE(indents_what_is_not_empty) {
  const auto written = [](const JsonIndent& indent) {
    std::string text;
    JsonWriter json(text, indent);
    json.begin_object().member("a", 1).key("b").begin_array();
    json.begin_array().end_array().begin_object().end_object().value("x").end_array();
    json.key("c").begin_object().member("d", 0.5).end_object().key("e").raw("[1, 2]");
    json.end_object();
    return text;
  };
  BOOST_TEST(written({}) ==
             "{\n  \"a\": 1,\n  \"b\": [\n    [],\n    {},\n    \"x\"\n  ],\n  \"c\": {\n"
             "    \"d\": 0.5\n  },\n  \"e\": [1, 2]\n}");
  BOOST_TEST(written({.spaces = 1, .margin = "> "}) ==
             "{\n>  \"a\": 1,\n>  \"b\": [\n>   [],\n>   {},\n>   \"x\"\n>  ],\n>  \"c\": {\n"
             ">   \"d\": 0.5\n>  },\n>  \"e\": [1, 2]\n> }");
  std::string text;
  JsonWriter(text, JsonIndent{}).begin_object().end_object();
  BOOST_TEST(text == "{}");
}

BOOST_AUTO_TEST_CASE(text_can_be_handed_on_between_calls) {
  std::string out, all;
  JsonWriter json(out);
  json.begin_array();
  for (int i = 0; i < 3; ++i) {
    json.value(i);
    all += out;
    out.clear();
  }
  json.end_array();
  BOOST_TEST(all + out == "[0,1,2]");
}

// The table of serde_json's format_escaped_str, which safetensors files are written with.
BOOST_AUTO_TEST_CASE(escapes_as_serde_json_does) {
  BOOST_TEST(string_text("\" \\ / \b \f \n \r \t") == R"("\" \\ / \b \f \n \r \t")");
  BOOST_TEST(string_text(std::string("\0\x01\x0b\x1f\x7f", 5)) ==
             "\"\\u0000\\u0001\\u000b\\u001f\x7f\"");
  BOOST_TEST(string_text("\xC3\xA9\xF0\x9F\x98\x80\xE2\x80\xA8") ==
             "\"\xC3\xA9\xF0\x9F\x98\x80\xE2\x80\xA8\"");
}

BOOST_AUTO_TEST_CASE(every_byte_below_128_reads_back) {
  std::string all;
  for (char c = 0; c >= 0 && c < 127; ++c) all += c;
  std::string back;
  json::walk_object("{\"a\":" + string_text(all) + "}", 4,
                    [&](std::string_view, json::Value& value) { back = value.string(); });
  BOOST_TEST(back == all);
}

BOOST_AUTO_TEST_CASE(numbers_are_shortest_and_exact) {
  BOOST_TEST(number_text(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  BOOST_TEST(number_text(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  BOOST_TEST(number_text(std::uint8_t{200}) == "200");
  BOOST_TEST(number_text(0.1) == "0.1");
  BOOST_TEST(number_text(0.1f) == "0.1");
  BOOST_TEST(number_text(1e300) == "1e+300");
  BOOST_TEST(number_text(-0.0) == "-0");
  BOOST_TEST(number_text(std::nan("")) == "null");
  BOOST_TEST(number_text(-INFINITY) == "null");
}

BOOST_AUTO_TEST_SUITE_END()
