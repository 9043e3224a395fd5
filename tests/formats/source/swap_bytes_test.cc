#include "formats/source/swap_bytes.h"

#include <algorithm>
#include <vector>

#include "boost_test.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(swapped_bytes)

BOOST_AUTO_TEST_CASE(each_number_is_turned_around_by_itself) {
  const auto check = [](DType dtype, std::size_t width) {
    std::vector<std::byte> expected(48);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<std::byte>(i);
    std::vector<std::byte> swapped = expected;
    for (auto at = expected.begin(); at != expected.end(); at += static_cast<long>(width))
      std::reverse(at, at + static_cast<long>(width));
    formats::swap_bytes(dtype, swapped);
    BOOST_TEST((swapped == expected), dtype_name(dtype));
  };
  check(DType::u8, 1);
  check(DType::bf16, 2);
  check(DType::i32, 4);
  check(DType::f64, 8);
  // Two numbers an element.
  check(DType::c64, 4);
  check(DType::c128, 8);
}

BOOST_AUTO_TEST_SUITE_END()
