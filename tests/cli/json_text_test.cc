#include "cli/json_text.h"

#include <string>
#include <string_view>

#include "boost_test.h"

using namespace thalia::cli;

BOOST_AUTO_TEST_SUITE(json_text)

BOOST_AUTO_TEST_CASE(json_is_indented_token_by_token) {
  BOOST_TEST(pretty_json(R"({"a":[1, 2],"b":{},"c":"x,{\"" })") ==
             "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {},\n  \"c\": \"x,{\\\"\"\n}");
  BOOST_TEST(pretty_json("[1]", "> ") == "[\n>   1\n> ]");
}

BOOST_AUTO_TEST_CASE(json_members_are_found_at_the_top_only) {
  const std::string_view text = R"( {"x":{"k":1},"s":"}\"","k" : [1,"a,b",{"k":2}] } )";
  BOOST_TEST(json_member(text, "k").value() == R"([1,"a,b",{"k":2}])");
  BOOST_TEST(json_member(text, "s").value() == R"("}\"")");
  BOOST_TEST(!json_member(text, "a"));
  BOOST_TEST(!json_member("[1]", "a"));
  BOOST_TEST(!json_member("{}", "a"));
  BOOST_TEST(json_member(R"({"k":1,"k":2})", "k").value() == "2");
  const auto elements = json_elements(R"([1,"a,b",{"k":2}])");
  BOOST_TEST_REQUIRE(elements->size() == 3u);
  BOOST_TEST((*elements)[1] == R"("a,b")");
  BOOST_TEST(json_elements("[ ]")->empty());
  BOOST_TEST(!json_elements("{}"));
}

BOOST_AUTO_TEST_SUITE_END()
