#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "boost_test.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "thalia/state/tensor_value.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(tensor_encoding)

namespace {

// [[0, 1.5, 0], [0, 0, 0], [-2, 0, -0.0]]
Tensor matrix() {
  return Tensor::copy_of<float>({3, 3}, std::array<float, 9>{0, 1.5F, 0, 0, 0, 0, -2, 0, -0.0F});
}

template <typename Index>
std::vector<Index> list(std::span<const Index> span) {
  return {span.begin(), span.end()};
}

Tensor mostly_zeros(DType dtype, const Shape& shape, std::uint64_t nonzero) {
  Tensor tensor = Tensor::zeros(dtype, shape);
  const std::size_t width = dtype_bits(dtype) / 8;
  const MutableByteSpan bytes = tensor.mutable_bytes();
  // The last byte of an element: a search that looks at the first ones alone misses it.
  for (std::uint64_t i = 0; i < nonzero; ++i) bytes[(i * 7 % 110 + 1) * width - 1] = std::byte{1};
  return tensor;
}

}  // namespace

BOOST_AUTO_TEST_CASE(csr_holds_what_is_not_zero_bits) {
  const Tensor sparse = matrix().to_csr();
  BOOST_TEST(sparse.nnz() == 3);
  const auto arrays = std::get<CsrArrays<std::uint32_t>>(sparse.csr());
  BOOST_TEST((list(arrays.row_pointers) == std::vector<std::uint32_t>{0, 1, 1, 3}));
  BOOST_TEST((list(arrays.column_indices) == std::vector<std::uint32_t>{1, 0, 2}));
  std::array<float, 3> values;
  std::memcpy(values.data(), arrays.values.data(), 12);
  BOOST_TEST(values[0] == 1.5F);
  BOOST_TEST(values[1] == -2.0F);
  BOOST_TEST(std::signbit(values[2]));
}

BOOST_AUTO_TEST_CASE(coo_lists_coordinates_dimension_by_dimension) {
  const Tensor sparse = matrix().to_coo();
  const auto arrays = std::get<CooArrays<std::uint32_t>>(sparse.coo());
  BOOST_TEST((list(arrays.indices) == std::vector<std::uint32_t>{0, 2, 2, 1, 0, 2}));
}

BOOST_AUTO_TEST_CASE(each_encoding_gives_the_same_elements_back) {
  for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::i64, DType::c128}) {
    const Tensor dense = mostly_zeros(dtype, {11, 10}, 9);
    BOOST_TEST((dense.to_csr().to_dense() == dense));
    BOOST_TEST((dense.to_coo().to_dense() == dense));
    BOOST_TEST((dense.to_csr().to_coo() == dense.to_coo()));
    BOOST_TEST((dense.to_coo().to_csr() == dense.to_csr()));
  }
  const Tensor cube = mostly_zeros(DType::f32, {2, 5, 11}, 9);
  BOOST_TEST((cube.to_coo().to_dense() == cube));
}

BOOST_AUTO_TEST_CASE(nothing_is_copied_where_the_encoding_is_there_already) {
  const Tensor dense = matrix();
  BOOST_TEST(dense.to_dense().bytes().data() == dense.bytes().data());
  const Tensor sparse = dense.to_csr();
  BOOST_TEST(sparse.to_csr().bytes().data() == sparse.bytes().data());
}

BOOST_AUTO_TEST_CASE(empty_matrices_have_encodings_too) {
  for (const Shape& shape : {Shape{0, 5}, Shape{5, 0}}) {
    const Tensor empty = Tensor::zeros(DType::f32, shape);
    BOOST_TEST((empty.to_csr().to_dense() == empty));
    BOOST_TEST((empty.to_coo().to_dense() == empty));
  }
}

BOOST_AUTO_TEST_CASE(refuses_encodings_that_the_tensor_cannot_have) {
  expect<UsageError>([] { Tensor::zeros(DType::f32, {4}).to_csr(); }, ErrorCode::bad_argument);
  expect<UsageError>([] { Tensor::zeros(DType::f32, {}).to_coo(); }, ErrorCode::bad_argument);
  expect<UsageError>([] { Tensor::zeros(DType::i4, {4, 4}).to_csr(); }, ErrorCode::bad_argument);
}

// The source: "automatic sparsity detection, >90 % zeros"; its program: more than 100 elements.
BOOST_AUTO_TEST_CASE(sparse_is_chosen_strictly_above_90_percent_zeros_of_more_than_100_elements) {
  const auto choice = [](const Tensor& tensor) {
    return tensor.to_sparse_where_smaller().encoding();
  };
  BOOST_TEST((choice(mostly_zeros(DType::f32, {110}, 11)) == Encoding::dense));
  BOOST_TEST((choice(mostly_zeros(DType::f32, {110}, 10)) == Encoding::coo));
  BOOST_TEST((choice(mostly_zeros(DType::f64, {5, 22}, 10)) == Encoding::csr));
  BOOST_TEST((choice(Tensor::zeros(DType::f32, {100})) == Encoding::dense));
  BOOST_TEST((choice(Tensor::zeros(DType::f32, {101})) == Encoding::coo));
  BOOST_TEST((choice(mostly_zeros(DType::f32, {109}, 10)) == Encoding::coo));
  BOOST_TEST((choice(mostly_zeros(DType::f32, {109}, 11)) == Encoding::dense));
}

BOOST_AUTO_TEST_CASE(a_matrix_gets_the_smaller_of_its_two_encodings) {
  const auto choice = [](const Shape& shape, std::uint64_t nonzero) {
    return mostly_zeros(DType::f32, shape, nonzero).to_sparse_where_smaller();
  };
  // 10 of 1000 rows have an element: 1001 beginnings of rows against 10 numbers of rows.
  const Tensor tall = choice({1000, 2}, 10);
  BOOST_TEST((tall.encoding() == Encoding::coo));
  BOOST_TEST(tall.bytes().size() < tall.to_dense().to_csr().bytes().size());
  BOOST_TEST((tall.to_dense() == mostly_zeros(DType::f32, {1000, 2}, 10)));
  BOOST_TEST((choice({2, 1000}, 10).encoding() == Encoding::csr));
}

BOOST_AUTO_TEST_CASE(sparse_is_not_chosen_where_it_is_larger) {
  // 10 of 110 bytes with four indices of 4 bytes each: 170 bytes.
  BOOST_TEST((mostly_zeros(DType::u8, {1, 1, 10, 11}, 10).to_sparse_where_smaller().encoding() ==
              Encoding::dense));
}

BOOST_AUTO_TEST_CASE(a_bad_index_is_found_before_it_is_used) {
  const std::array<std::uint32_t, 3> rows{0, 1, 2};
  const std::array<std::uint32_t, 2> columns{0, 2};
  const std::array<float, 2> values{1, 2};
  const Tensor sparse =
      Tensor::csr<std::uint32_t>(DType::f32, {2, 2}, {rows, columns, as_byte_span(values)});
  const auto& error = expect<FormatError>([&] { sparse.to_dense(); }, ErrorCode::bad_value);
  BOOST_TEST(error.message() == "column_indices[1] is 2, expected below 2");
  expect<FormatError>([&] { sparse.csr(); }, ErrorCode::bad_value);
}

BOOST_AUTO_TEST_CASE(wide_indices_are_kept_and_read) {
  const std::array<std::uint64_t, 2> indices{3, 5};
  const std::array<double, 2> values{1, 2};
  const Tensor sparse =
      Tensor::coo<std::uint64_t>(DType::f64, {6}, {indices, as_byte_span(values)});
  BOOST_TEST(sparse.layout().wide_indices);
  const auto dense = sparse.to_dense();
  BOOST_TEST(dense.as<double>()[3] == 1);
  BOOST_TEST(dense.as<double>()[5] == 2);
  BOOST_TEST(sparse.values().size() == 16);
}

BOOST_AUTO_TEST_SUITE_END()
