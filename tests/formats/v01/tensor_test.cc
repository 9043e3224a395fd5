// Tensors of version 0.1. Known answers, as hexadecimal bytes: encode_tensor of the original
// program.
#include "formats/v01/tensor.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "boost_test.h"
#include "formats/v01/tensor_reader.h"
#include "support/bytes.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;
using formats::v01_sparse_by_rule;
using formats::V01TensorReader;

BOOST_AUTO_TEST_SUITE(v01_tensor)

namespace {

std::vector<std::byte> encoded(const Tensor& tensor) {
  const Tensor storable = formats::v01_storable(v01_sparse_by_rule(tensor));
  std::vector<std::byte> bytes = formats::v01_tensor_header(storable);
  const std::size_t header = bytes.size();
  bytes.resize(header + storable.bytes().size());
  if (!storable.bytes().empty())
    std::memcpy(bytes.data() + header, storable.bytes().data(), storable.bytes().size());
  BOOST_TEST(bytes.size() == formats::v01_tensor_bytes(storable));
  return bytes;
}

Tensor decoded(const std::vector<std::byte>& bytes) {
  V01TensorReader reader(bytes, nullptr, 1);
  const V01TensorReader::Found& found = reader.at(0);
  BOOST_TEST(found.bytes == bytes.size());
  return found.tensor;
}

void check(const Tensor& tensor, const std::string& expected) {
  const auto bytes = encoded(tensor);
  BOOST_TEST(hex(bytes) == expected);
  BOOST_TEST((decoded(bytes).to_dense() == tensor.to_dense()));
}

template <typename T>
Tensor with(const Shape& shape, std::initializer_list<std::pair<std::size_t, T>> elements) {
  Tensor tensor = Tensor::zeros(DTypeOf<T>::value, shape);
  for (const auto& [i, value] : elements) tensor.mutable_as<T>()[i] = value;
  return tensor;
}

}  // namespace

BOOST_AUTO_TEST_CASE(dense_tensors_are_the_originals_bytes) {
  check(with<float>({}, {{0, -7.5f}}), "0000000000000000000000000000f0c0");
  const std::array<bool, 7> truths{true, false, false, true, true, false, true};
  check(Tensor::copy_of<bool>({7}, truths), "0000000004000000010000000700000001000001010001");
  check(with<std::int32_t>({5}, {{0, -2}, {1, -1}, {3, 1}, {4, 2}}),
        "00000000020000000100000005000000feffffffffffffff000000000100000002000000");
  check(with<std::int64_t>({2, 2}, {{0, 1}, {1, -2}, {2, 3}, {3, -4}}),
        "0000000003000000020000000200000002000000"
        "0100000000000000feffffffffffffff0300000000000000fcffffffffffffff");
  check(Tensor::zeros(DType::f32, {0}), "00000000000000000100000000000000");
  check(Tensor::zeros(DType::f32, {0, 3}), "0000000000000000020000000000000003000000");
}

BOOST_AUTO_TEST_CASE(sparse_tensors_are_the_originals_bytes) {
  check(Tensor::zeros(DType::f32, {101}), "010000000000000001000000650000000000000000000000");
  check(with<float>({20, 20}, {{1, 1.5f}, {63, 0.25f}, {380, -2.0f}}),
        "010000000000000002000000140000001400000003000000000000000000000000000000030000000000000013"
        "000000"
        "000000000100000000000000030000000000000000000000000000000000c03f0000803e000000c0");
  check(with<std::int32_t>({200}, {{3, 5}, {199, -6}}),
        "010000000200000001000000c800000002000000000000000300000000000000c70000000000000005000000fa"
        "ffffff");
  check(with<double>({5, 6, 7}, {{59, 1e-300}}),
        "010000000100000003000000050000000600000007000000010000000000000001000000000000000200000000"
        "000000"
        "030000000000000059f3f8c21f6ea501");
  check(with<Float16>({20, 20}, {{85, Float16{0x3800}}}),
        "010000000500000002000000140000001400000001000000000000000400000000000000050000000000000000"
        "38");
}

BOOST_AUTO_TEST_CASE(sparse_by_rule_is_more_than_90_percent_of_more_than_100_elements) {
  const auto is_sparse = [](const Tensor& tensor) {
    return !v01_sparse_by_rule(tensor).is_dense();
  };
  BOOST_TEST(!is_sparse(Tensor::zeros(DType::f32, {100})));
  BOOST_TEST(is_sparse(Tensor::zeros(DType::f32, {101})));
  Tensor tenth = Tensor::zeros(DType::f32, {110});
  for (std::size_t i = 0; i < 11; ++i) tenth.mutable_as<float>()[i] = 1;
  BOOST_TEST(!is_sparse(tenth));
  tenth.mutable_as<float>()[10] = 0;
  BOOST_TEST(is_sparse(tenth));
  BOOST_TEST(v01_sparse_by_rule(tenth).nnz() == 10u);
}

BOOST_AUTO_TEST_CASE(by_rule_nan_is_stored_and_negative_zero_is_not) {
  // As the original's sparse_neg_zero_nan.
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const auto infinity = std::numeric_limits<float>::infinity();
  const auto bytes = encoded(with<float>({120}, {{3, -0.0f}, {5, nan}, {7, infinity}}));
  BOOST_TEST(
      hex(bytes) ==
      "010000000000000001000000780000000200000000000000050000000000000007000000000000000000c07f"
      "0000807f");
  const Tensor sparse_doubles = v01_sparse_by_rule(with<double>({200}, {{0, -0.0}, {9, 1.0}}));
  BOOST_TEST(sparse_doubles.nnz() == 1u);
  const Tensor halves = v01_sparse_by_rule(with<Float16>({200}, {{0, Float16{0x8000}}}));
  BOOST_TEST(halves.nnz() == 0u);
  // The sign bit of an integer counts.
  const Tensor integers = v01_sparse_by_rule(
      with<std::int32_t>({200}, {{0, std::numeric_limits<std::int32_t>::min()}}));
  BOOST_TEST(integers.nnz() == 1u);
}

BOOST_AUTO_TEST_CASE(csr_and_narrow_coordinates_are_widened) {
  const Tensor dense = with<float>({3, 4}, {{1, 1.0f}, {2, 2.0f}, {11, 3.0f}});
  for (const Tensor& sparse : {dense.to_csr(), dense.to_coo()}) {
    const Tensor stored = formats::v01_storable(sparse);
    BOOST_TEST((stored.encoding() == Encoding::coo));
    BOOST_TEST(stored.layout().wide_indices);
    BOOST_TEST((decoded(encoded(sparse)).to_dense() == dense));
  }
}

BOOST_AUTO_TEST_CASE(types_that_the_original_refuses_are_refused_by_name) {
  for (const DType dtype :
       {DType::i8, DType::u8, DType::i16, DType::bf16, DType::u64, DType::c64}) {
    const UnsupportedError error = expect<UnsupportedError>(
        [&] { formats::v01_storable(Tensor::zeros(dtype, {2})); }, ErrorCode::unsupported_feature);
    BOOST_TEST(error.context().value == dtype_name(dtype));
  }
}

BOOST_AUTO_TEST_SUITE_END()
