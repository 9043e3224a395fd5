#include "thalia/types.h"

#include <vector>

#include "boost_test.h"
#include "thalia/error.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(shape)

BOOST_AUTO_TEST_CASE(scalar_has_one_element) {
  BOOST_TEST(*Shape().element_count() == 1u);
  BOOST_TEST(Shape().to_string() == "[]");
}

BOOST_AUTO_TEST_CASE(zero_extent_is_empty_however_large_the_rest) {
  BOOST_TEST(*Shape({1ull << 63, 1ull << 63, 0}).element_count() == 0u);
}

BOOST_AUTO_TEST_CASE(overflow_is_nullopt) {
  BOOST_TEST(!Shape({1ull << 32, 1ull << 32}).element_count());
  BOOST_TEST(!Shape({1ull << 62}).byte_length(DType::f64));
  BOOST_TEST(*Shape({1ull << 63}).byte_length(DType::binary) == 1ull << 60);
}

BOOST_AUTO_TEST_CASE(packed_types_round_up_to_a_byte) {
  BOOST_TEST(*Shape({3}).byte_length(DType::i4) == 2u);
  BOOST_TEST(*Shape({5}).byte_length(DType::f6_e2m3) == 4u);
  BOOST_TEST(*Shape({9}).byte_length(DType::binary) == 2u);
}

BOOST_AUTO_TEST_CASE(ninth_dimension_is_refused) {
  const std::vector<std::uint64_t> nine(9, 1);
  BOOST_CHECK_THROW(Shape(std::span<const std::uint64_t>(nine)), UsageError);
}

BOOST_AUTO_TEST_CASE(every_dtype_name_finds_its_code) {
  for (std::uint8_t code = 0; code < kDTypeCount; ++code) {
    const DType dtype = static_cast<DType>(code);
    BOOST_TEST((dtype_from_name(dtype_name(dtype)) == dtype));
    BOOST_TEST(dtype_bits(dtype) > 0u);
  }
  BOOST_TEST(!dtype_from_name("float32"));
}

BOOST_AUTO_TEST_SUITE_END()
