#include "inspect/block_cursor.h"

#include <string>

#include "boost_test.h"
#include "state/tensor/slice.h"

using namespace thalia;
using namespace thalia::inspect;
using thalia::state::range_elements;

BOOST_AUTO_TEST_SUITE(block_cursor)

namespace {

// "0:2,0:3 2:4,0:3"
std::string blocks(std::vector<SliceRange> ranges, DType dtype, std::uint64_t limit) {
  BlockCursor cursor(std::move(ranges), dtype, limit);
  std::string text;
  while (const auto block = cursor.next()) {
    text += text.empty() ? "" : " ";
    std::string separator;
    for (const auto [begin, end] : *block) {
      text += separator + std::to_string(begin) + ":" + std::to_string(end);
      separator = ",";
    }
  }
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_fits_is_one_block) {
  BOOST_TEST(blocks({{0, 4}, {1, 3}}, DType::f32, 32) == "0:4,1:3");
}

BOOST_AUTO_TEST_CASE(outermost_dimension_that_fits_in_part_is_cut) {
  BOOST_TEST(blocks({{0, 5}, {1, 4}}, DType::f32, 24) == "0:2,1:4 2:4,1:4 4:5,1:4");
  BOOST_TEST(blocks({{0, 2}, {0, 3}}, DType::f32, 8) == "0:1,0:2 0:1,2:3 1:2,0:2 1:2,2:3");
}

BOOST_AUTO_TEST_CASE(one_element_is_the_least) {
  BOOST_TEST(blocks({{7, 9}}, DType::c128, 1) == "7:8 8:9");
}

BOOST_AUTO_TEST_CASE(packed_types_count_bits) {
  BOOST_TEST(blocks({{0, 20}}, DType::binary, 1) == "0:8 8:16 16:20");
}

BOOST_AUTO_TEST_CASE(scalar_is_one_block_and_empty_is_none) {
  BlockCursor scalar({}, DType::f32, 64);
  BOOST_TEST(scalar.next()->empty());
  BOOST_TEST(!scalar.next());
  BOOST_TEST(blocks({{0, 3}, {2, 2}}, DType::f32, 64) == "");
}

BOOST_AUTO_TEST_CASE(huge_ranges_saturate) {
  const std::uint64_t most = ~std::uint64_t{0};
  BOOST_TEST(range_elements(std::vector<SliceRange>{{0, most}, {0, 2}}) == most);
  BOOST_TEST(range_elements(std::vector<SliceRange>{{0, most}, {0, 2}, {5, 5}}) == 0u);
  BlockCursor cursor({{0, most}, {0, most}}, DType::f32, 4);
  const auto first = cursor.next();
  BOOST_TEST((*first)[0].end == 1u);
  BOOST_TEST((*first)[1].end == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
