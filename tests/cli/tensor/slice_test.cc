#include "cli/tensor/slice.h"

#include <string>
#include <vector>

#include "boost_test.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::cli;

BOOST_AUTO_TEST_SUITE(slice)

namespace {

// "0:4 2:3 -> [4, 1]"
std::string parsed(std::string_view text, const Shape& shape) {
  const Slice slice = parse_slice(text, shape);
  std::string out;
  for (const SliceRange& range : slice.ranges)
    out += std::to_string(range.begin) + ":" + std::to_string(range.end) + " ";
  return out + "-> " + slice.shape.to_string();
}

std::string refusal(std::string_view text, const Shape& shape) {
  try {
    parse_slice(text, shape);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

BOOST_AUTO_TEST_CASE(ranges_are_half_open_and_default_to_the_ends) {
  BOOST_TEST(parsed("0:4,:", {8, 3}) == "0:4 0:3 -> [4, 3]");
  BOOST_TEST(parsed("2:,:2", {8, 3}) == "2:8 0:2 -> [6, 2]");
  BOOST_TEST(parsed(" 1 : 2 , : ", {8, 3}) == "1:2 0:3 -> [1, 3]");
}

BOOST_AUTO_TEST_CASE(one_index_drops_its_dimension) {
  BOOST_TEST(parsed("3", {8, 3}) == "3:4 0:3 -> [3]");
  BOOST_TEST(parsed("3,1", {8, 3}) == "3:4 1:2 -> []");
}

BOOST_AUTO_TEST_CASE(negative_numbers_count_from_the_end) {
  BOOST_TEST(parsed("-1,-2:", {8, 3}) == "7:8 1:3 -> [2]");
  BOOST_TEST(parsed("-8:-7", {8}) == "0:1 -> [1]");
  BOOST_TEST(parsed("-0:3", {8}) == "0:3 -> [3]");
}

BOOST_AUTO_TEST_CASE(missing_parts_and_dots_take_all) {
  BOOST_TEST(parsed("", {8, 3}) == "0:8 0:3 -> [8, 3]");
  BOOST_TEST(parsed("", {}) == "-> []");
  BOOST_TEST(parsed("...", {}) == "-> []");
  BOOST_TEST(parsed("...,1", {8, 3, 2}) == "0:8 0:3 1:2 -> [8, 3]");
  BOOST_TEST(parsed("1,...,1", {8, 3, 2}) == "1:2 0:3 1:2 -> [3]");
  BOOST_TEST(parsed("1,...,1", {8, 3}) == "1:2 1:2 -> []");
}

BOOST_AUTO_TEST_CASE(empty_ranges_are_legal) {
  BOOST_TEST(parsed("8:8", {8}) == "8:8 -> [0]");
  BOOST_TEST(parsed(":", {0}) == "0:0 -> [0]");
}

BOOST_AUTO_TEST_CASE(a_bound_outside_names_dimension_value_and_bound) {
  BOOST_TEST(refusal(":,0:4", {8, 3}) == "--slice: dimension 1: got '4', expected -3 to 3");
  BOOST_TEST(refusal("8", {8}) == "--slice: dimension 0: got '8', expected -8 to 7");
  BOOST_TEST(refusal("-9:", {8}) == "--slice: dimension 0: got '-9', expected -8 to 8");
  BOOST_TEST(refusal("99999999999999999999", {8}) ==
             "--slice: dimension 0: got '99999999999999999999', expected -8 to 7");
  BOOST_TEST(refusal("0", {0}) ==
             "--slice: dimension 0 is empty and has no index: got '0', "
             "expected a range");
}

BOOST_AUTO_TEST_CASE(what_is_no_slice_is_refused) {
  BOOST_TEST(refusal("1:2,1", {8}) ==
             "--slice: 2 parts for a tensor of shape [8]: got '1:2,1', expected at most 1");
  BOOST_TEST(refusal("5:2", {8}) ==
             "--slice: dimension 0: the range ends at 2, before it begins: "
             "got '5:2', expected an end of at least 5");
  BOOST_TEST(refusal("0:8:2", {8}) ==
             "--slice: dimension 0: there are no steps: got '0:8:2', expected FIRST:END");
  for (const char* bad : {"x", "1.5", "+1", "0x1", "1 2", "-", ",", "...,...", "--1", "1e3"})
    BOOST_TEST(refusal(bad, {8, 3}) != "accepted", bad);
}

BOOST_AUTO_TEST_CASE(the_largest_extents_do_not_overflow) {
  const std::uint64_t most = ~std::uint64_t{0};
  BOOST_TEST(parsed("-1", {most}) == "18446744073709551614:18446744073709551615 -> []");
  BOOST_TEST(parsed(":18446744073709551615", {most}) ==
             "0:18446744073709551615 -> [18446744073709551615]");
}

BOOST_AUTO_TEST_SUITE_END()
