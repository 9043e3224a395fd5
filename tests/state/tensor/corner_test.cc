#include "state/tensor/corner.h"

#include <numeric>
#include <vector>

#include "boost_test.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::state;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(tensor_corner)

namespace {

// 1, 2, 3, … in row-major order.
Tensor counting(const Shape& shape) {
  Tensor tensor = Tensor::zeros(DType::f32, shape);
  const auto values = tensor.mutable_as<float>();
  std::iota(values.begin(), values.end(), 1.0F);
  return tensor;
}

// 100 plus the element's number.
void number_them(std::uint64_t first, std::span<double> values) {
  std::iota(values.begin(), values.end(), 100.0 + static_cast<double>(first));
}

std::vector<float> floats(const Tensor& tensor) {
  const Tensor dense = tensor.to_dense();
  const auto values = dense.as<float>();
  return {values.begin(), values.end()};
}

const std::vector<float> kGrownMatrix{1, 2, 3, 103, 4, 5, 6, 107, 108, 109, 110, 111};

}  // namespace

BOOST_AUTO_TEST_CASE(old_elements_keep_their_indices_and_new_ones_are_filled) {
  const Tensor larger = grown(counting({2, 3}), {3, 4}, number_them);
  BOOST_TEST(floats(larger) == kGrownMatrix, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(every_encoding_grows_to_the_same_elements) {
  for (const Tensor& old : {counting({2, 3}).to_csr(), counting({2, 3}).to_coo()}) {
    const Tensor larger = grown(old, {3, 4}, number_them);
    BOOST_TEST((larger.encoding() == old.encoding()));
    BOOST_TEST(floats(larger) == kGrownMatrix, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(without_a_fill_sparse_tensors_store_what_they_stored) {
  const Tensor larger = grown(counting({2, 3}).to_csr(), {5, 9});
  BOOST_TEST(larger.nnz() == 6);
  BOOST_TEST(floats(larger) == floats(grown(counting({2, 3}), {5, 9})),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(zeros_of_a_fill_are_not_stored) {
  const auto every_other = [](std::uint64_t first, std::span<double> values) {
    for (double& value : values) value = first++ % 2 == 0 ? 7 : 0;
  };
  const Tensor larger = grown(counting({2, 2}).to_coo(), {2, 4}, every_other);
  BOOST_TEST(floats(larger) == (std::vector<float>{1, 2, 7, 0, 3, 4, 7, 0}),
             boost::test_tools::per_element());
  BOOST_TEST(larger.nnz() == 6);
}

BOOST_AUTO_TEST_CASE(growth_is_bound_by_what_it_allocates) {
  constexpr std::uint64_t kMany = 1ULL << 50;
  const auto limited = has_code(ErrorCode::limit_exceeded);
  const Tensor old = counting({2, 3});
  BOOST_CHECK_EXCEPTION(grown(old, {2, kMany}), FormatError, limited);
  BOOST_CHECK_EXCEPTION(grown(old.to_coo(), {2, kMany}, number_them), FormatError, limited);
  BOOST_CHECK_EXCEPTION(grown(old.to_csr(), {kMany, 3}), FormatError, limited);
  BOOST_TEST(grown(old.to_csr(), {2, kMany}).nnz() == 6);
  BOOST_TEST(grown(old.to_coo(), {kMany, 3}).nnz() == 6);
}

BOOST_AUTO_TEST_CASE(inner_dimensions_grow) {
  const Tensor larger = grown(counting({2, 1, 2}), {2, 2, 3});
  BOOST_TEST(floats(larger) == (std::vector<float>{1, 2, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(bits_of_nan_and_of_negative_zero_survive) {
  const std::vector<std::uint32_t> bits{0x7fc12345, 0x80000000};
  const Tensor old = Tensor::copy_of(DType::f32, {2}, std::as_bytes(std::span(bits)));
  const Tensor larger = grown(old, {3}, number_them);
  BOOST_TEST(std::ranges::equal(larger.bytes().first(8), old.bytes()));
}

BOOST_AUTO_TEST_CASE(packed_elements_grow_bit_by_bit) {
  // Three i4 a row: 1 2 3 / 4 5 6, to rows of four.
  const std::vector<std::byte> packed{std::byte{0x21}, std::byte{0x43}, std::byte{0x65}};
  const Tensor larger = grown(Tensor::copy_of(DType::i4, {2, 3}, packed), {3, 4});
  const std::vector<std::byte> wanted{std::byte{0x21}, std::byte{0x03}, std::byte{0x54},
                                      std::byte{0x06}, std::byte{0},    std::byte{0}};
  BOOST_TEST(std::ranges::equal(larger.bytes(), wanted));
}

BOOST_AUTO_TEST_CASE(a_tensor_grows_from_nothing) {
  BOOST_TEST(floats(grown(counting({0, 3}), {2, 3}, number_them)) ==
                 (std::vector<float>{100, 101, 102, 103, 104, 105}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_equal_shape_costs_nothing) {
  const Tensor old = counting({2, 3});
  BOOST_TEST(grown(old, {2, 3}, number_them).bytes().data() == old.bytes().data());
}

BOOST_AUTO_TEST_CASE(fills_of_long_runs_are_the_same_in_pieces) {
  const Tensor larger = grown(counting({1, 1}), {3, 70'000}, number_them);
  const auto values = larger.as<float>();
  BOOST_TEST(values[0] == 1.0F);
  for (std::size_t i = 1; i < values.size(); ++i)
    BOOST_REQUIRE_EQUAL(values[i], static_cast<float>(100 + i));
}

BOOST_AUTO_TEST_CASE(smaller_shapes_and_other_ranks_are_refused) {
  for (const Shape& shape : {Shape{2, 2}, Shape{1, 3}, Shape{6}, Shape{2, 3, 1}}) {
    BOOST_CHECK_EXCEPTION(grown(counting({2, 3}), shape), UsageError,
                          has_code(ErrorCode::size_mismatch));
  }
  const Tensor sparse = counting({2, 3}).to_coo();
  constexpr std::uint64_t kHuge = 1ULL << 40;
  BOOST_CHECK_EXCEPTION(grown(sparse, {kHuge, kHuge}), UsageError,
                        has_code(ErrorCode::size_mismatch));
}

BOOST_AUTO_TEST_CASE(indices_become_wide_where_they_have_to) {
  const Tensor larger = grown(counting({2, 3}).to_coo(), {2, 5'000'000'000});
  BOOST_TEST(larger.layout().wide_indices);
  BOOST_TEST(larger.nnz() == 6);
}

BOOST_AUTO_TEST_CASE(a_fill_needs_an_element_type_of_numbers) {
  const Tensor old = Tensor::zeros(DType::f8_e4m3, {2});
  BOOST_CHECK_EXCEPTION(grown(old, {3}, number_them), UsageError,
                        has_code(ErrorCode::dtype_mismatch));
}

BOOST_AUTO_TEST_CASE(a_corner_replaces_its_part_in_every_encoding) {
  const Tensor whole = grown(Tensor::zeros(DType::f32, {0, 0}), {3, 4}, number_them);
  const std::vector<float> wanted{1, 2, 102, 103, 3, 4, 106, 107, 108, 109, 110, 111};
  for (const Tensor& into : {whole, whole.to_csr(), whole.to_coo()}) {
    for (const Tensor& corner : {counting({2, 2}), counting({2, 2}).to_csr()}) {
      const Tensor result = with_corner(into, corner);
      BOOST_TEST((result.encoding() == into.encoding()));
      BOOST_TEST(floats(result) == wanted, boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(zeros_of_a_corner_are_stored_by_dense_tensors_only) {
  const Tensor whole = counting({2, 2});
  const Tensor zero = Tensor::zeros(DType::f32, {1, 1});
  BOOST_TEST(with_corner(whole.to_csr(), zero).nnz() == 3);
  BOOST_TEST(floats(with_corner(whole, zero)) == (std::vector<float>{0, 2, 3, 4}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(corners_of_another_type_or_size_are_refused) {
  const Tensor whole = counting({2, 2});
  BOOST_CHECK_EXCEPTION(with_corner(whole, counting({3, 1})), UsageError,
                        has_code(ErrorCode::size_mismatch));
  BOOST_CHECK_EXCEPTION(with_corner(whole, Tensor::zeros(DType::f64, {1, 1})), UsageError,
                        has_code(ErrorCode::dtype_mismatch));
}

BOOST_AUTO_TEST_SUITE_END()
