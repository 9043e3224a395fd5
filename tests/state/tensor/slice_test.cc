#include "state/tensor/slice.h"

#include <cstdint>
#include <numeric>
#include <vector>

#include "boost_test.h"

using namespace thalia;
using namespace thalia::state;

BOOST_AUTO_TEST_SUITE(copy_slice_of)

BOOST_AUTO_TEST_CASE(every_range_of_three_dimensions_gives_its_elements) {
  const Shape shape{3, 4, 5};
  std::vector<std::uint16_t> tensor(60);
  std::iota(tensor.begin(), tensor.end(), std::uint16_t{0});
  for (std::uint64_t a = 0; a < 3; ++a) {
    for (std::uint64_t b = a; b <= 3; ++b) {
      for (std::uint64_t c = 0; c < 5; ++c) {
        const std::vector<SliceRange> ranges{{a, b}, {1, 4}, {c, 5}};
        std::vector<std::uint16_t> out(range_elements(ranges));
        copy_slice(DType::u16, shape, as_byte_span(tensor), ranges,
                   std::as_writable_bytes(std::span(out)));
        std::size_t n = 0;
        for (std::uint64_t i = a; i < b; ++i)
          for (std::uint64_t j = 1; j < 4; ++j)
            for (std::uint64_t k = c; k < 5; ++k)
              BOOST_TEST_REQUIRE(out[n++] == i * 20 + j * 5 + k);
        BOOST_TEST(n == out.size());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_bytes_of_a_run_are_known_and_of_several_are_not) {
  const std::vector<std::byte> tensor(60 * 2);
  const auto place = [&](std::vector<SliceRange> ranges) {
    const auto bytes = consecutive(DType::u16, {3, 4, 5}, tensor, ranges);
    BOOST_TEST_REQUIRE(bytes.has_value());
    return std::pair(bytes->data() - tensor.data(), bytes->size());
  };
  BOOST_TEST((place({{0, 3}, {0, 4}, {0, 5}}) == std::pair(std::ptrdiff_t{0}, std::size_t{120})));
  BOOST_TEST((place({{1, 2}, {2, 4}, {0, 5}}) == std::pair(std::ptrdiff_t{60}, std::size_t{20})));
  BOOST_TEST((place({{2, 3}, {3, 4}, {4, 5}}) == std::pair(std::ptrdiff_t{118}, std::size_t{2})));
  BOOST_TEST(place({{1, 1}, {0, 4}, {0, 5}}).second == 0u);
  const std::vector<SliceRange> column{{0, 3}, {0, 4}, {1, 2}};
  BOOST_TEST(!consecutive(DType::u16, {3, 4, 5}, tensor, column));
  // Six bits each: the second and third of six lie in the first to the third byte.
  const std::vector<SliceRange> inside{{0, 1}, {1, 3}};
  const auto bytes = consecutive(DType::f6_e2m3, {2, 3}, ByteSpan(tensor).first(5), inside);
  BOOST_TEST_REQUIRE(bytes.has_value());
  BOOST_TEST((bytes->data() == tensor.data() && bytes->size() == 3));
}

BOOST_AUTO_TEST_CASE(packed_rows_that_start_inside_a_byte_are_shifted) {
  // Two rows of three elements of six bits: 1 2 3, 4 5 6.
  std::vector<std::uint8_t> packed(5);
  for (unsigned i = 0; i < 6; ++i) {
    for (unsigned bit = 0; bit < 6; ++bit) {
      if ((i + 1) >> bit & 1) packed[(i * 6 + bit) / 8] |= 1u << ((i * 6 + bit) % 8);
    }
  }
  const std::vector<SliceRange> ranges{{0, 2}, {1, 3}};
  std::vector<std::byte> out(packed_bytes(DType::f6_e2m3, 4), std::byte{0xFF});
  BOOST_TEST_REQUIRE(out.size() == 3u);
  copy_slice(DType::f6_e2m3, {2, 3}, as_byte_span(packed), ranges, out);
  const std::uint32_t stream = std::to_integer<std::uint32_t>(out[0]) |
                               std::to_integer<std::uint32_t>(out[1]) << 8 |
                               std::to_integer<std::uint32_t>(out[2]) << 16;
  BOOST_TEST(stream == (2u | 3u << 6 | 5u << 12 | 6u << 18));
}

BOOST_AUTO_TEST_CASE(scalar_is_copied_and_nothing_is_not) {
  const std::vector<double> one{2.5};
  std::vector<double> out(1);
  copy_slice(DType::f64, {}, as_byte_span(one), {}, std::as_writable_bytes(std::span(out)));
  BOOST_TEST(out[0] == 2.5);
  const std::vector<SliceRange> none{{0, 0}};
  copy_slice(DType::f64, {0}, {}, none, {});
}

BOOST_AUTO_TEST_SUITE_END()
