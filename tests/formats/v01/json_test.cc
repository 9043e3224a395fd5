// Known answers: json.dumps(value, indent=2) of CPython 3.11.
#include "formats/v01/json.h"

#include <string>

#include "boost_test.h"
#include "state/value/value_json.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;
using formats::python_json;

BOOST_AUTO_TEST_SUITE(v01_json)

namespace {

Value parsed(std::string_view text) {
  return state::parse_json(text, {}, json::Dialect::python);
}

}  // namespace

BOOST_AUTO_TEST_CASE(writes_what_python_writes) {
  const std::string text =
      "{\n  \"a\": [\n    1,\n    2.5,\n    {\n      \"b\": null\n    },\n    [],\n    {}\n  ],\n"
      "  \"t\": true,\n  \"f\": false,\n  \"big\": 123456789012345678901234567890,\n"
      "  \"n\": [\n    NaN,\n    Infinity,\n    -Infinity,\n    -0.0,\n    1e-07,\n    1e+22\n  "
      "],\n"
      "  \"s\": \"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f ~\\u007f\\u00e9\\u20ac\\ud83d\\ude00\",\n"
      "  \"\\u00e9\": {}\n}";
  BOOST_TEST(python_json(parsed(text)) == text);
  BOOST_TEST(python_json(parsed("{}")) == "{}");
}

BOOST_AUTO_TEST_CASE(any_layout_is_written_as_pythons) {
  BOOST_TEST(python_json(parsed(R"( {"b" :[1 ,2],"a":"\u0041\/"} )")) ==
             "{\n  \"b\": [\n    1,\n    2\n  ],\n  \"a\": \"A/\"\n}");
}

BOOST_AUTO_TEST_CASE(lone_surrogates_come_back) {
  const std::string text = "{\n  \"\\ud800\": \"x\\udfff\\ud83d\\ude00\\ud83d\"\n}";
  BOOST_TEST(python_json(parsed(text)) == text);
}

BOOST_AUTO_TEST_CASE(of_a_name_twice_the_last_value_stands_in_the_place_of_the_first) {
  // json.dumps(json.loads('{"a":1,"b":2,"a":3}'))
  BOOST_TEST(python_json(parsed(R"({"a":1,"b":2,"a":3})")) == "{\n  \"a\": 3,\n  \"b\": 2\n}");
}

BOOST_AUTO_TEST_CASE(numbers_of_this_library_are_written_as_pythons) {
  Value value = Value::object();
  value["a"] = 0.1;
  value["b"] = 8.0;
  value["c"] = 1e22;
  value["d"] = 1e-7;
  value["e"] = -0.0;
  value["f"] = 7;
  BOOST_TEST(python_json(value) ==
             "{\n  \"a\": 0.1,\n  \"b\": 8.0,\n  \"c\": 1e+22,\n  \"d\": 1e-07,\n  \"e\": -0.0,\n"
             "  \"f\": 7\n}");
}

BOOST_AUTO_TEST_CASE(tensors_are_asked_for_depth_first_and_by_path) {
  Value tree = Value::object();
  tree["x"]["list"] = Value::array();
  tree["x"]["list"].push_back(Tensor());
  tree["y"] = Tensor();
  std::string paths;
  const std::string text = python_json(tree, [&](const Tensor&, const std::string& path) {
    paths += path + ";";
    Value place = Value::object();
    place["_type"] = "tensor";
    return place;
  });
  BOOST_TEST(paths == "x.list[0];y;");
  BOOST_TEST(
      text ==
      "{\n  \"x\": {\n    \"list\": [\n      {\n        \"_type\": \"tensor\"\n      }\n    ]\n"
      "  },\n  \"y\": {\n    \"_type\": \"tensor\"\n  }\n}");
}

BOOST_AUTO_TEST_CASE(refuses_bytes_that_no_python_string_has) {
  for (const char* text : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xF4\x90\x80\x80",
                           "\xF5\x80\x80\x80", "\xE2\x82", "ok\xFF"}) {
    Value value = Value::object();
    value["s"] = text;
    expect<UnsupportedError>([&] { python_json(value); }, ErrorCode::unsupported_feature);
  }
}

BOOST_AUTO_TEST_SUITE_END()
