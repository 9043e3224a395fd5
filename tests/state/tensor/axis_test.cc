#include "state/tensor/axis.h"

#include <vector>

#include "boost_test.h"
#include "state/growth/growth_sample.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::state;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(tensor_axis)

BOOST_AUTO_TEST_CASE(indices_are_taken_out_of_any_axis) {
  const Tensor tensor = counting(DType::f32, {2, 3});
  const std::vector<std::uint64_t> middle{1};
  BOOST_TEST(numbers(without_indices(tensor, 1, middle)) == (std::vector<double>{1, 3, 4, 6}),
             boost::test_tools::per_element());
  BOOST_TEST(numbers(only_indices(tensor, 1, middle)) == (std::vector<double>{2, 5}),
             boost::test_tools::per_element());
  BOOST_TEST(numbers(without_indices(tensor, 0, middle)) == (std::vector<double>{1, 2, 3}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_is_put_back_is_what_was_taken_out) {
  const std::vector<std::vector<std::uint64_t>> choices{{}, {0}, {2}, {0, 3}, {1, 2}, {0, 1, 2, 3}};
  for (const Shape& shape : {Shape{4}, Shape{4, 4}, Shape{4, 4, 4}}) {
    for (const DType dtype : {DType::f32, DType::f16, DType::i4, DType::binary}) {
      std::vector<std::byte> bytes(*shape.byte_length(dtype));
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 5);
      const Tensor dense = Tensor::copy_of(dtype, shape, bytes);
      std::vector<Tensor> tensors{dense};
      if (!dtype_is_packed(dtype)) tensors.push_back(dense.to_coo());
      if (!dtype_is_packed(dtype) && shape.rank() == 2) tensors.push_back(dense.to_csr());
      for (const Tensor& tensor : tensors) {
        for (unsigned axis = 0; axis < shape.rank(); ++axis) {
          for (const auto& indices : choices) {
            const Tensor rest = without_indices(tensor, axis, indices);
            BOOST_TEST(rest.shape()[axis] == 4 - indices.size());
            const Tensor taken = only_indices(tensor, axis, indices);
            BOOST_TEST((with_indices(rest, axis, indices, taken) == tensor));
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(what_no_longer_fits_is_refused) {
  const Tensor tensor = counting(DType::f32, {4, 4});
  const std::vector<std::uint64_t> indices{3};
  const Tensor taken = only_indices(tensor, 0, indices);
  for (const Tensor& rest : {counting(DType::f32, {3, 5}), counting(DType::f32, {1, 4}),
                             counting(DType::f64, {3, 4}), counting(DType::f32, {3, 4}).to_csr()}) {
    BOOST_CHECK_EXCEPTION(with_indices(rest, 0, indices, taken), UsageError,
                          has_code(ErrorCode::size_mismatch));
  }
}

BOOST_AUTO_TEST_SUITE_END()
