#include "cli/print/json_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "boost_test.h"
#include "support/files.h"

using namespace thalia;
using namespace thalia::cli;

BOOST_AUTO_TEST_SUITE(json_text)

BOOST_AUTO_TEST_CASE(json_is_indented_token_by_token) {
  BOOST_TEST(pretty_json(R"({"a":[1.50, 2],"b":{},"c":"x,{\"" })") ==
             "{\n  \"a\": [\n    1.50,\n    2\n  ],\n  \"b\": {},\n  \"c\": \"x,{\\\"\"\n}");
  BOOST_TEST(pretty_json("[1]", "> ") == "[\n>   1\n> ]");
}

BOOST_AUTO_TEST_CASE(json_members_are_found_at_the_top_only) {
  const std::string_view text = R"( {"x":{"k":1},"s":"}\"","k" : [1,"a,b",{"k":2}] } )";
  BOOST_TEST(json_member(text, "k").value() == R"([1,"a,b",{"k":2}])");
  BOOST_TEST(json_member(text, "s").value() == R"("}\"")");
  BOOST_TEST(json_member(R"({"\u006b":{ "x" : 1 }})", "k").value() == R"({"x":1})");
  BOOST_TEST(!json_member(text, "a"));
  BOOST_TEST(!json_member("{}", "a"));
  BOOST_TEST(!json_member("[1]", "a"));
  BOOST_TEST(json_member(R"({"k":1,"k":2})", "k").value() == "2");
}

// What 0.1 files say of metadata is what Python's json module wrote.
BOOST_AUTO_TEST_CASE(numbers_of_python_are_shown) {
  BOOST_TEST(pretty_json(R"({"a":NaN,"b":-Infinity})") ==
             "{\n  \"a\": NaN,\n  \"b\": -Infinity\n}");
}

// Erasing each line from the front of the rest would move 10^13 bytes.
BOOST_AUTO_TEST_CASE(json_of_many_lines_is_printed) {
  constexpr int kElements = 1'000'000;
  std::string json = "[0";
  for (int i = 1; i < kElements; ++i) json += ",0";
  const test::TemporaryFolder folder;
  const int file = ::open((folder / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  Output out(file);
  print_pretty_json(out, json + "]", "  ");
  out.flush();
  ::close(file);
  const std::string printed = test::read_file(folder / "out");
  BOOST_TEST(std::count(printed.begin(), printed.end(), '\n') == kElements + 2);
  BOOST_TEST(printed.starts_with("[\n    0,\n    0,\n"));
  BOOST_TEST(printed.ends_with(",\n    0\n  ]\n"));
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
