#include "codec/cpu/element_layout.h"

#include <algorithm>

#include "boost_test.h"

using namespace thalia;
using codec::Content;
using codec::element_layout;

BOOST_AUTO_TEST_SUITE(element_layout_of_a_dtype)

BOOST_AUTO_TEST_CASE(halves_of_complex_numbers_are_floats) {
  BOOST_TEST((element_layout(DType::c64) == element_layout(DType::f32)));
  BOOST_TEST((element_layout(DType::c128) == element_layout(DType::f64)));
}

BOOST_AUTO_TEST_CASE(bfloat16_has_the_exponent_of_f32_and_the_width_of_f16) {
  BOOST_TEST(element_layout(DType::bf16).exponent_bits == 8);
  BOOST_TEST(element_layout(DType::bf16).element_bytes == 2);
  BOOST_TEST(element_layout(DType::f16).exponent_bits == 5);
}

BOOST_AUTO_TEST_CASE(whole_elements_have_their_width_and_packed_ones_are_bytes) {
  for (unsigned code = 0; code < kDTypeCount; ++code) {
    const auto dtype = static_cast<DType>(code);
    const codec::ElementLayout layout = element_layout(dtype);
    const unsigned bits = dtype_bits(dtype);
    const bool is_packed = dtype_is_packed(dtype);
    BOOST_TEST(layout.element_bytes == (is_packed ? 1 : std::min(8u, dtype_alignment(dtype))));
    if (is_packed) BOOST_TEST((layout.content == Content::bytes));
    BOOST_TEST(bits >= (is_packed ? 1u : layout.element_bytes * 8u));
  }
}

BOOST_AUTO_TEST_SUITE_END()
