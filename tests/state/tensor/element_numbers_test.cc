#include "state/tensor/element_numbers.h"

#include <limits>
#include <numeric>
#include <vector>

#include "boost_test.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::state;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(element_numbers)

namespace {

template <typename T>
std::vector<T> written(std::vector<double> numbers) {
  std::vector<T> elements(numbers.size());
  write_numbers(DTypeOf<T>::value, numbers, std::as_writable_bytes(std::span(elements)));
  return elements;
}

}  // namespace

BOOST_AUTO_TEST_CASE(integers_are_rounded_to_even_and_end_at_their_bounds) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  BOOST_TEST(written<std::int8_t>({0.5, 1.5, -2.5, 127.4, 127.5, 1000, -1000, kInfinity}) ==
                 (std::vector<std::int8_t>{0, 2, -2, 127, 127, 127, -128, 127}),
             boost::test_tools::per_element());
  BOOST_TEST(written<std::uint16_t>({-0.4, -1, 65535.4, 1e9, std::nan("")}) ==
                 (std::vector<std::uint16_t>{0, 0, 65535, 65535, 0}),
             boost::test_tools::per_element());
  BOOST_TEST(written<std::uint64_t>({1e30, 0x1p63}) ==
                 (std::vector<std::uint64_t>{std::numeric_limits<std::uint64_t>::max(),
                                             std::uint64_t{1} << 63}),
             boost::test_tools::per_element());
  BOOST_TEST(written<std::int64_t>({1e30, -1e30}) ==
                 (std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::max(),
                                            std::numeric_limits<std::int64_t>::min()}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(numbers_survive_in_every_type) {
  const std::vector<double> numbers{0, 1, -2, 100};
  for (std::uint8_t code = 0; code < kDTypeCount; ++code) {
    const auto dtype = static_cast<DType>(code);
    if (!holds_numbers(dtype)) continue;
    const bool is_unsigned = dtype >= DType::u8 && dtype <= DType::u64;
    std::vector<std::byte> elements(numbers.size() * dtype_bits(dtype) / 8);
    write_numbers(dtype, numbers, elements);
    const std::vector<double> wanted{0, 1, is_unsigned ? 0.0 : -2.0, 100};
    BOOST_TEST(numbers_of(dtype, elements) == wanted, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(halves_round_to_nearest_even) {
  // 2049 lies between 2048 and 2050, which f16 has: IEEE 754, binary16 has 11 bits of mantissa.
  std::vector<std::byte> element(2);
  write_numbers(DType::f16, std::vector<double>{2049}, element);
  BOOST_TEST(numbers_of(DType::f16, element).front() == 2048);
}

BOOST_AUTO_TEST_CASE(numbers_are_visited_in_order_and_each_once) {
  std::vector<double> numbers(20'000);  // more than two pieces
  std::iota(numbers.begin(), numbers.end(), 0.0);
  std::vector<double> seen;
  for_each_number(DType::f64, std::as_bytes(std::span(numbers)),
                  [&](double number) { seen.push_back(number); });
  BOOST_TEST((seen == numbers));
}

BOOST_AUTO_TEST_CASE(types_without_numbers_are_refused) {
  std::vector<std::byte> element(16);
  for (const DType dtype : {DType::boolean, DType::f8_e4m3, DType::i4, DType::c64}) {
    BOOST_TEST(!holds_numbers(dtype));
    BOOST_CHECK_EXCEPTION(numbers_of(dtype, element), UsageError,
                          has_code(ErrorCode::dtype_mismatch));
    BOOST_CHECK_EXCEPTION(write_numbers(dtype, std::vector<double>{1}, element), UsageError,
                          has_code(ErrorCode::dtype_mismatch));
  }
}

BOOST_AUTO_TEST_SUITE_END()
