#include "cli/print/json_text.h"

#include <fcntl.h>
#include <unistd.h>

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

// Erasing each line from the front of the rest would move 10^13 bytes.
BOOST_AUTO_TEST_CASE(json_of_many_lines_is_printed) {
  std::string json = "[0";
  for (int i = 1; i < 1'000'000; ++i) json += ",0";
  const int nowhere = ::open("/dev/null", O_WRONLY);
  Output out(nowhere);
  print_pretty_json(out, json + "]", "  ");
  out.flush();
  ::close(nowhere);
}

BOOST_AUTO_TEST_CASE(json_is_printed_line_by_line) {
  int ends[2];
  BOOST_TEST_REQUIRE(::pipe(ends) == 0);
  Output out(ends[1]);
  print_pretty_json(out, "{\"a\":[1],\"b\":\"\xc2\x85\"}", "> ");
  out.flush();
  char text[100];
  const auto length = ::read(ends[0], text, sizeof text);
  BOOST_TEST(std::string(text, static_cast<std::size_t>(length)) ==
             "{\n>   \"a\": [\n>     1\n>   ],\n>   \"b\": \"\\u0085\"\n> }\n");
  ::close(ends[0]);
  ::close(ends[1]);
}

BOOST_AUTO_TEST_SUITE_END()
