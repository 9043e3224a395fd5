// The configuration of an adapter: one rank for most layers, and patterns that fit no other layer.
#include "formats/weight_sync/adapter_config.h"

#include <string>
#include <vector>

#include "boost_test.h"

using namespace thalia::formats::weight_sync;

BOOST_AUTO_TEST_SUITE(adapter_config)

namespace {

// What follows a member's name, up to the end of its object or line.
std::string member(const std::string& text, const std::string& name) {
  const std::size_t begin = text.find('"' + name + "\": ");
  BOOST_REQUIRE(begin != std::string::npos);
  const std::size_t value = begin + name.size() + 4;
  const char end = text[value] == '{' ? '}' : text[value] == '[' ? ']' : '\n';
  std::string found;
  for (std::size_t i = value; i < text.size(); ++i) {
    if (text[i] != ' ' && text[i] != '\n') found += text[i];
    if (text[i] == end) break;
  }
  return found;
}

}  // namespace

BOOST_AUTO_TEST_CASE(layers_of_one_rank_need_no_patterns) {
  const std::string text =
      write_adapter_config({{.name = "a.b", .rank = 4}, {.name = "b", .rank = 4}}, "base", true);
  BOOST_TEST(member(text, "r") == "4,");
  BOOST_TEST(member(text, "lora_alpha") == "4,");
  BOOST_TEST(member(text, "rank_pattern") == "{}");
  BOOST_TEST(member(text, "alpha_pattern") == "{}");
  BOOST_TEST(member(text, "target_modules") == "[\"a.b\",\"b\"]");
  BOOST_TEST(member(text, "fan_in_fan_out") == "true,");
  BOOST_TEST(member(text, "base_model_name_or_path") == "\"base\",");
}

BOOST_AUTO_TEST_CASE(a_name_that_ends_as_a_listed_one_is_listed_before_it) {
  const std::string text = write_adapter_config({{.name = "0", .rank = 1},
                                                 {.name = "x.0", .rank = 4},
                                                 {.name = "x.1", .rank = 4},
                                                 {.name = "y(1)", .rank = 2}},
                                                {}, false);
  BOOST_TEST(member(text, "r") == "4,");
  const std::string patterns = "{\"y\\\\(1\\\\)\":2,\"x.0\":4,\"0\":1}";
  BOOST_TEST(member(text, "rank_pattern") == patterns);
  BOOST_TEST(member(text, "alpha_pattern") == patterns);
  BOOST_TEST(member(text, "base_model_name_or_path") == "null,");
}

BOOST_AUTO_TEST_SUITE_END()
