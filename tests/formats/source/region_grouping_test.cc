#include <string>

#include "boost_test.h"
#include "thalia/formats/file_facts.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(region_grouping)

namespace {

std::string automatic(std::string_view name) {
  return region_for_name(name, {});
}
std::string by_depth(std::string_view name, unsigned depth) {
  return region_for_name(name, {.kind = RegionGrouping::Kind::depth, .depth = depth});
}

}  // namespace

BOOST_AUTO_TEST_CASE(automatic_ends_with_the_first_number) {
  BOOST_TEST(automatic("model.layers.3.self_attn.q_proj.weight") == "model.layers.3");
  BOOST_TEST(automatic("h.0.attn.1.w") == "h.0");
  BOOST_TEST(automatic("betas.12") == "betas.12");
  BOOST_TEST(automatic("0.weight") == "0");
  BOOST_TEST(automatic("7") == "7");
}

BOOST_AUTO_TEST_CASE(automatic_without_a_number_drops_the_last_part) {
  BOOST_TEST(automatic("lstm_cell.weight_ih") == "lstm_cell");
  BOOST_TEST(automatic("a.b.c.weight") == "a.b.c");
  BOOST_TEST(automatic("conv1.bias") == "conv1");
  BOOST_TEST(automatic("a.3x.b") == "a.3x");
  BOOST_TEST(automatic("a.-1.b") == "a.-1");
  BOOST_TEST(automatic("a..b") == "a.");
}

BOOST_AUTO_TEST_CASE(a_name_without_a_prefix_goes_to_model) {
  BOOST_TEST(automatic("weight") == "model");
  BOOST_TEST(automatic("") == "model");
  BOOST_TEST(automatic(".weight") == "model");
  BOOST_TEST(automatic(".") == "model");
  BOOST_TEST(by_depth("weight", 3) == "model");
  BOOST_TEST(by_depth("a.b", 0) == "model");
}

BOOST_AUTO_TEST_CASE(a_prefix_that_no_region_may_have_goes_to_model) {
  BOOST_TEST(automatic(std::string("a\0b.w", 5)) == "model");
  BOOST_TEST(automatic(std::string(65536, 'x') + ".w") == "model");
  BOOST_TEST(automatic(std::string(65535, 'x') + ".w") == std::string(65535, 'x'));
}

BOOST_AUTO_TEST_CASE(depth_takes_that_many_parts_but_never_the_last) {
  BOOST_TEST(by_depth("model.layers.3.w", 1) == "model");
  BOOST_TEST(by_depth("model.layers.3.w", 2) == "model.layers");
  BOOST_TEST(by_depth("model.layers.3.w", 3) == "model.layers.3");
  BOOST_TEST(by_depth("model.layers.3.w", 4) == "model.layers.3");
  BOOST_TEST(by_depth("model.layers.3.w", ~0u) == "model.layers.3");
  BOOST_TEST(by_depth(".x.y", 2) == ".x");
}

BOOST_AUTO_TEST_CASE(none_is_one_region) {
  BOOST_TEST(region_for_name("model.layers.3.w", {.kind = RegionGrouping::Kind::none}) == "model");
}

BOOST_AUTO_TEST_SUITE_END()
