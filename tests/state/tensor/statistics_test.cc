#include "thalia/state/tensor_value.h"

#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "boost_test.h"
#include "state/tensor/element_decoder.h"
#include "support/bytes.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(statistics)

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <typename T>
TensorStatistics statistics(DType dtype, const std::vector<T>& elements) {
  StatisticsTally tally(dtype);
  tally.add(as_byte_span(elements), elements.size());
  return tally.result();
}

bool is_near(double found, double expected) {
  return found == expected || std::fabs(found - expected) <= 1e-13 * std::fabs(expected);
}

// One element after the other, in long double.
void check_same(const TensorStatistics& found, const std::vector<double>& elements) {
  TensorStatistics expected{.elements = elements.size()};
  long double sum = 0, squares = 0, distances = 0;
  double min = kInfinity, max = -kInfinity;
  for (const double x : elements) {
    expected.zeros += x == 0;
    expected.nan += std::isnan(x);
    expected.infinite += std::isinf(x);
    if (!std::isfinite(x)) continue;
    sum += x;
    squares += static_cast<long double>(x) * x;
    min = std::min(min, x);
    max = std::max(max, x);
  }
  const auto count = static_cast<long double>(expected.finite());
  for (const double x : elements)
    if (std::isfinite(x)) distances += (x - sum / count) * (x - sum / count);
  BOOST_TEST(found.elements == expected.elements);
  BOOST_TEST(found.zeros == expected.zeros);
  BOOST_TEST(found.nan == expected.nan);
  BOOST_TEST(found.infinite == expected.infinite);
  if (expected.finite() == 0) {
    for (const double x : {found.min, found.max, found.mean, found.deviation, found.norm})
      BOOST_TEST(x == 0);
    return;
  }
  BOOST_TEST(found.min == min);
  BOOST_TEST(found.max == max);
  // Where numbers cancel out, their mean is as exact as they are.
  BOOST_TEST(std::fabs(found.mean - static_cast<double>(sum / count)) <=
             1e-13 * std::max(std::fabs(min), std::fabs(max)));
  BOOST_TEST(is_near(found.deviation, static_cast<double>(std::sqrt(distances / count))));
  BOOST_TEST(is_near(found.norm, static_cast<double>(std::sqrt(squares))));
}

}  // namespace

BOOST_AUTO_TEST_CASE(counts_what_is_special_and_leaves_it_out_of_the_rest) {
  const auto of = statistics<float>(
      DType::f32, {1, -2, 0, -0.0f, 4, 1e-40f, -1e-45f, NAN, INFINITY, -INFINITY, INFINITY});
  BOOST_TEST(of.elements == 11u);
  BOOST_TEST(of.finite() == 7u);
  BOOST_TEST(of.zeros == 2u);
  BOOST_TEST(of.subnormal == 2u);
  BOOST_TEST(of.nan == 1u);
  BOOST_TEST(of.infinite == 3u);
  BOOST_TEST(of.min == -2);
  BOOST_TEST(of.max == 4);
  BOOST_TEST(is_near(of.mean, 3.0 / 7));
  BOOST_TEST(is_near(of.norm, std::sqrt(21.0)));
  BOOST_TEST(is_near(of.deviation, std::sqrt(3 - 9.0 / 49)));
}

BOOST_AUTO_TEST_CASE(of_nothing_everything_is_zero) {
  check_same(statistics<float>(DType::f32, {}), {});
  check_same(statistics<float>(DType::f32, {NAN, -INFINITY}), {kNan, -kInfinity});
}

BOOST_AUTO_TEST_CASE(are_those_of_the_numbers_whatever_the_length) {
  std::vector<double> elements;
  for (const std::size_t length : {1, 2, 7, 8, 9, 1023, 1024, 1025, 5000}) {
    while (elements.size() < length) {
      const auto i = static_cast<double>(elements.size());
      elements.push_back(elements.size() % 97 == 5 ? kNan : std::sin(i) * std::exp(i / 500) + 3);
    }
    check_same(statistics(DType::f64, elements), elements);
  }
}

BOOST_AUTO_TEST_CASE(a_small_spread_around_a_large_mean_is_not_lost) {
  std::vector<double> elements;
  for (int i = 0; i < 4000; ++i) elements.push_back(1e9 + i % 2);
  const TensorStatistics of = statistics(DType::f64, elements);
  BOOST_TEST(of.mean == 1e9 + 0.5);
  BOOST_TEST(of.deviation == 0.5);
}

BOOST_AUTO_TEST_CASE(squares_may_be_larger_or_smaller_than_an_f64) {
  TensorStatistics of = statistics<double>(DType::f64, {1e300, -1e300, 1e300, -1e300});
  BOOST_TEST(of.mean == 0);
  BOOST_TEST(is_near(of.deviation, 1e300));
  BOOST_TEST(is_near(of.norm, 2e300));
  of = statistics<double>(DType::f64, {1.7e308, 1.7e308, 1.7e308});
  BOOST_TEST(is_near(of.mean, 1.7e308));
  BOOST_TEST(of.norm == std::numeric_limits<double>::max());
  of = statistics<double>(DType::f64, {1e-300, 3e-300});
  BOOST_TEST(is_near(of.deviation, 1e-300));
  BOOST_TEST(is_near(of.norm, std::sqrt(10.0) * 1e-300));
  BOOST_TEST(of.subnormal == 0u);
}

BOOST_AUTO_TEST_CASE(every_code_of_every_small_type_counts) {
  for (std::uint8_t d = 0; d < kDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (dtype_bits(dtype) > 16) continue;
    BOOST_TEST_CONTEXT(dtype_name(dtype)) {
      std::vector<std::byte> bytes(std::size_t{1} << 17);
      for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = dtype_bits(dtype) == 16 ? std::byte(i % 2 == 0 ? i / 2 : i >> 9) : std::byte(i);
      const std::size_t count = bytes.size() * 8 / dtype_bits(dtype);
      std::vector<double> elements(count);
      state::decode_elements(dtype, bytes, 0, std::span(elements));
      StatisticsTally tally(dtype);
      tally.add(bytes, count);
      check_same(tally.result(), elements);
    }
  }
}

// Codes of the exponent zero, of both signs, in all of the codes that there are.
BOOST_AUTO_TEST_CASE(subnormal_is_what_the_dtype_has_below_its_normal_numbers) {
  const auto subnormal = [](DType dtype) {
    std::vector<std::byte> bytes(dtype_bits(dtype) == 16 ? 1 << 17 : 256);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = dtype_bits(dtype) == 16 ? std::byte(i % 2 == 0 ? i / 2 : i >> 9) : std::byte(i);
    StatisticsTally tally(dtype);
    tally.add(bytes, bytes.size() * 8 / dtype_bits(dtype));
    return tally.result().subnormal;
  };
  BOOST_TEST(subnormal(DType::f16) == 2u * 1023);
  BOOST_TEST(subnormal(DType::bf16) == 2u * 127);
  BOOST_TEST(subnormal(DType::f8_e4m3) == 2u * 7);
  BOOST_TEST(subnormal(DType::f8_e5m2) == 2u * 3);
  BOOST_TEST(subnormal(DType::f8_e4m3fnuz) == 2u * 7);
  BOOST_TEST(subnormal(DType::f8_e5m2fnuz) == 2u * 3);
  BOOST_TEST(subnormal(DType::f8_e8m0) == 0u);
  BOOST_TEST(subnormal(DType::i8) == 0u);
  BOOST_TEST(subnormal(DType::u16) == 0u);
  // Two codes a byte: each of 16 codes 32 times, of which 0.5 and -0.5.
  BOOST_TEST(subnormal(DType::f4_e2m1) == 2u * 32);
}

BOOST_AUTO_TEST_CASE(of_complex_numbers_the_absolute_value_counts) {
  const std::vector<std::complex<float>> elements{{3, 4}, {0, 0}, {-6, 8}, {NAN, 1}};
  const TensorStatistics of = statistics(DType::c64, elements);
  BOOST_TEST(of.min == 0);
  BOOST_TEST(of.max == 10);
  BOOST_TEST(of.mean == 5);
  BOOST_TEST(of.zeros == 1u);
  BOOST_TEST(of.nan == 1u);
}

BOOST_AUTO_TEST_CASE(pieces_add_up_to_the_whole) {
  std::vector<double> elements;
  for (int i = 0; i < 10'000; ++i) elements.push_back(std::cos(i) * i);
  for (const std::size_t piece : {1, 333, 4096, 9999}) {
    StatisticsTally total(DType::f64);
    for (std::size_t at = 0; at < elements.size(); at += piece) {
      const std::size_t length = std::min(piece, elements.size() - at);
      StatisticsTally part(DType::f64);
      part.add(as_byte_span(std::span(elements).subspan(at, length)), length);
      total.add(part);
    }
    check_same(total.result(), elements);
  }
}

// Four pieces of 2 MiB, and a part of one.
BOOST_AUTO_TEST_CASE(a_tensor_read_in_pieces_gives_the_same_bits_on_any_number_of_threads) {
  std::vector<float> elements((8u << 20) / sizeof(float) + 1000);
  std::vector<double> numbers;
  for (std::size_t i = 0; i < elements.size(); ++i)
    numbers.push_back(elements[i] = static_cast<float>(std::sin(static_cast<double>(i)) * 1e3));
  const SliceReader read = [&](std::span<const SliceRange> ranges, MutableByteSpan out) {
    const ByteSpan bytes = as_byte_span(elements);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(ranges[0].begin * sizeof(float)),
                out.size(), out.begin());
  };
  // Small ones before it, after it, and one of nothing.
  const auto rows = [&](std::uint64_t count) {
    return SlicedTensor{.dtype = DType::f32, .shape = {count}, .read = read};
  };
  const std::vector<SlicedTensor> tensors{rows(10), rows(0), rows(elements.size()), rows(999)};
  const std::vector<TensorStatistics> one = statistics_of(tensors, {.threads = 1});
  BOOST_TEST_REQUIRE(one.size() == tensors.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    const std::size_t count = tensors[i].shape[0];
    check_same(one[i], {numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(count)});
  }
  for (const unsigned threads : {2u, 3u, 8u}) {
    const std::vector<TensorStatistics> of = statistics_of(tensors, {.threads = threads});
    BOOST_TEST_REQUIRE(of.size() == one.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      BOOST_TEST(of[i].mean == one[i].mean);
      BOOST_TEST(of[i].deviation == one[i].deviation);
      BOOST_TEST(of[i].norm == one[i].norm);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_a_sparse_tensor_does_not_store_is_zero) {
  const std::vector<float> dense{0, 2, 0, 0, 0, -4, 0, 0, 0, 6, 0, 0};
  const Tensor tensor = Tensor::copy_of({3, 4}, dense);
  const std::vector<double> elements(dense.begin(), dense.end());
  check_same(statistics_of(tensor), elements);
  check_same(statistics_of(tensor.to_csr()), elements);
  check_same(statistics_of(tensor.to_coo()), elements);
}

BOOST_AUTO_TEST_CASE(a_sparse_tensor_of_more_elements_than_can_be_counted_has_the_most) {
  const std::vector<std::uint64_t> indices{0, 1, 5, 9};
  const std::vector<float> values{3, 4};
  const Tensor tensor =
      Tensor::coo<std::uint64_t>(DType::f32, {std::uint64_t{1} << 40, std::uint64_t{1} << 40},
                                 {.indices = indices, .values = as_byte_span(values)});
  const TensorStatistics of = statistics_of(tensor);
  BOOST_TEST(of.elements == ~std::uint64_t{0});
  BOOST_TEST(of.zeros == of.elements - 2);
  BOOST_TEST(is_near(of.norm, 5));
}

BOOST_AUTO_TEST_CASE(refuses_a_count_that_does_not_fill_the_bytes) {
  const std::vector<std::byte> bytes(8);
  for (const std::uint64_t count : {0u, 1u, 3u, 100u}) {
    StatisticsTally tally(DType::f32);
    BOOST_CHECK_EXCEPTION(tally.add(bytes, count), UsageError, has_code(ErrorCode::size_mismatch));
  }
}

BOOST_AUTO_TEST_SUITE_END()
