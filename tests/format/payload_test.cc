#include "format/payload.h"

#include "boost_test.h"

using namespace thalia;
using namespace thalia::format;

BOOST_AUTO_TEST_SUITE(payload)

BOOST_AUTO_TEST_CASE(narrow_csr_of_four_byte_values_has_the_source_layout) {
  const auto parts = *sparse_parts({DType::f32, {3, 5}, Encoding::csr, 7, false});
  BOOST_TEST(parts.row_pointers.offset == 0u);
  BOOST_TEST(parts.row_pointers.length == 16u);
  BOOST_TEST(parts.indices.offset == 16u);
  BOOST_TEST(parts.values.offset == 44u);
  BOOST_TEST(parts.length == 72u);
}

BOOST_AUTO_TEST_CASE(eight_byte_values_are_padded_to_their_alignment) {
  const auto parts = *sparse_parts({DType::f64, {3, 5}, Encoding::csr, 2, false});
  BOOST_TEST(parts.values.offset == 24u);
  const auto odd = *sparse_parts({DType::f64, {2, 5}, Encoding::csr, 2, false});
  BOOST_TEST(odd.indices.offset == 12u);
  BOOST_TEST(odd.values.offset == 24u);
  BOOST_TEST(odd.length == 40u);
}

BOOST_AUTO_TEST_CASE(wide_indices_take_eight_bytes) {
  const auto parts = *sparse_parts({DType::u8, {4, 4, 4}, Encoding::coo, 3, true});
  BOOST_TEST(parts.indices.length == 72u);
  BOOST_TEST(parts.values.offset == 72u);
  BOOST_TEST(parts.length == 75u);
}

BOOST_AUTO_TEST_CASE(impossible_combinations_are_nullopt) {
  BOOST_TEST(!sparse_parts({DType::f32, {3}, Encoding::csr, 0, false}));
  BOOST_TEST(!sparse_parts({DType::i4, {3, 3}, Encoding::csr, 0, false}));
  BOOST_TEST(!sparse_parts({DType::f32, {}, Encoding::coo, 0, false}));
  BOOST_TEST(!sparse_parts({DType::f32, {UINT64_MAX, 1}, Encoding::csr, 0, false}));
  BOOST_TEST(!sparse_parts({DType::f64, {4}, Encoding::coo, 1ull << 62, true}));
  BOOST_TEST(!payload_length({DType::f32, {1}, Encoding::quantized}));
}

BOOST_AUTO_TEST_CASE(sixty_four_kibibytes_start_on_a_page) {
  BOOST_TEST(payload_alignment(65535) == 64u);
  BOOST_TEST(payload_alignment(65536) == 4096u);
}

BOOST_AUTO_TEST_SUITE_END()
