// What a tensor becomes in a 0.1 file. v01_storable() decides; what it returns has one of six
// dtypes, extents below 2^32, and is dense or coo with indices of 64 bits. The other functions take
// only such tensors, so a plan and what is written from it agree on every length.
#include "formats/v01/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>

#include "base/fail.h"

namespace thalia::formats {
namespace {

using format::V01DType;
using format::V01Encoding;

[[noreturn]] void fail_unsupported(std::string_view field, std::string value, std::string bound) {
  throw UnsupportedError(
      ErrorCode::unsupported_feature, "0.1 files have no such tensors",
      {.field = std::string(field), .value = std::move(value), .bound = std::move(bound)});
}

// Row numbers, then column numbers: coo keeps its indices dimension by dimension.
template <typename Index>
std::vector<std::uint64_t> coordinates(const Tensor& tensor, const CsrArrays<Index>& csr) {
  const std::uint64_t nnz = tensor.nnz();
  std::vector<std::uint64_t> indices(2 * nnz);
  for (std::uint64_t row = 0; row + 1 < csr.row_pointers.size(); ++row) {
    std::fill(indices.begin() + static_cast<std::ptrdiff_t>(csr.row_pointers[row]),
              indices.begin() + static_cast<std::ptrdiff_t>(csr.row_pointers[row + 1]), row);
  }
  std::ranges::copy(csr.column_indices, indices.begin() + static_cast<std::ptrdiff_t>(nnz));
  return indices;
}

// Zero as a comparison with 0 finds it: the sign bit of a float does not count.
template <typename Bits>
bool is_zero(const std::byte* element, bool is_float) {
  Bits bits;
  std::memcpy(&bits, element, sizeof bits);
  constexpr int kSign = std::numeric_limits<Bits>::digits - 1;
  return (is_float ? bits & static_cast<Bits>(~(Bits{1} << kSign)) : bits) == 0;
}

template <typename Bits>
std::vector<std::uint64_t> nonzero_elements(const Tensor& dense, bool is_float) {
  std::vector<std::uint64_t> found;
  const ByteSpan bytes = dense.bytes();
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(Bits)) {
    if (!is_zero<Bits>(bytes.data() + at, is_float)) found.push_back(at / sizeof(Bits));
  }
  return found;
}

std::vector<std::uint64_t> nonzero_elements(const Tensor& dense) {
  const DType dtype = dense.dtype();
  const bool is_float = dtype == DType::f16 || dtype == DType::f32 || dtype == DType::f64;
  switch (dtype_bits(dtype)) {
    case 16:
      return nonzero_elements<std::uint16_t>(dense, is_float);
    case 32:
      return nonzero_elements<std::uint32_t>(dense, is_float);
    case 64:
      return nonzero_elements<std::uint64_t>(dense, is_float);
    default:  // bool is the only other one
      return nonzero_elements<std::uint8_t>(dense, is_float);
  }
}

Tensor coo_of(const Tensor& dense, const std::vector<std::uint64_t>& elements) {
  const Shape& shape = dense.shape();
  const std::size_t nnz = elements.size();
  const std::size_t width = dtype_bits(dense.dtype()) / 8;
  // Dimension by dimension, each with nnz indices.
  std::vector<std::uint64_t> indices(nnz * shape.rank());
  std::vector<std::byte> values(nnz * width);
  for (std::size_t i = 0; i < nnz; ++i) {
    std::uint64_t rest = elements[i];
    for (unsigned d = shape.rank(); d-- > 0; rest /= shape[d])
      indices[d * nnz + i] = rest % shape[d];
    std::memcpy(values.data() + i * width, dense.bytes().data() + elements[i] * width, width);
  }
  return Tensor::coo<std::uint64_t>(dense.dtype(), shape, {indices, values});
}

// Smaller tensors stay dense, however many zeros they have: the original's rule.
constexpr std::uint64_t kFewElements = 100;

}  // namespace

std::optional<V01DType> v01_dtype(DType dtype) noexcept {
  const auto found = std::ranges::find(kV01DTypes, dtype);
  if (found == kV01DTypes.end()) return std::nullopt;
  return static_cast<V01DType>(found - kV01DTypes.begin());
}

std::string v01_dtype_list() {
  return "f32, f64, i32, i64, bool or f16";
}

Tensor v01_storable(const Tensor& tensor) {
  if (!v01_dtype(tensor.dtype()))
    fail_unsupported("dtype", std::string(dtype_name(tensor.dtype())), v01_dtype_list());
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (std::ranges::any_of(tensor.shape().extents(), [](auto n) { return n > kMost; }))
    fail_unsupported("shape", tensor.shape().to_string(), "extents of less than 2^32");
  return tensor.is_dense() ? tensor : v01_wide_coo(tensor);
}

// A coo tensor with wide indices is returned as it is, without a copy.
Tensor v01_wide_coo(const Tensor& tensor) {
  if (tensor.encoding() == Encoding::coo && tensor.layout().wide_indices) return tensor;
  std::vector<std::uint64_t> indices;
  if (tensor.encoding() == Encoding::csr) {
    std::visit([&](const auto& arrays) { indices = coordinates(tensor, arrays); }, tensor.csr());
  } else {
    std::visit(
        [&](const auto& arrays) { indices.assign(arrays.indices.begin(), arrays.indices.end()); },
        tensor.coo());
  }
  return Tensor::coo<std::uint64_t>(tensor.dtype(), tensor.shape(), {indices, tensor.values()});
}

std::vector<std::byte> v01_tensor_header(const Tensor& storable) {
  const Shape& shape = storable.shape();
  const bool sparse = !storable.is_dense();
  std::vector<std::byte> out(v01_tensor_bytes(storable) - storable.bytes().size());
  std::byte* at = out.data();
  const auto put = [&](const auto& piece) {
    std::memcpy(at, &piece, sizeof piece);
    at += sizeof piece;
  };
  put(format::V01TensorHeader{sparse ? V01Encoding::sparse_coo : V01Encoding::dense,
                              *v01_dtype(storable.dtype()), shape.rank()});
  for (const std::uint64_t extent : shape.extents())
    put(format::le32(static_cast<std::uint32_t>(extent)));
  if (sparse) put(format::le64(storable.nnz()));
  return out;
}

std::uint64_t v01_tensor_bytes(const Tensor& storable) {
  return sizeof(format::V01TensorHeader) + storable.shape().rank() * sizeof(format::le32) +
         (storable.is_dense() ? 0 : sizeof(format::le64)) + storable.bytes().size();
}

Tensor v01_sparse_by_rule(const Tensor& tensor) {
  const std::uint64_t elements = tensor.element_count();
  if (!tensor.is_dense() || elements <= kFewElements || !v01_dtype(tensor.dtype())) return tensor;
  const std::vector<std::uint64_t> stored = nonzero_elements(tensor);
  // The original compares a mean in f32 with 1 - 0.1 in f64. The same arithmetic is needed to
  // choose the same tensors.
  const auto zeros = static_cast<float>(elements - stored.size());
  const float mean = zeros / static_cast<float>(elements);
  if (!(static_cast<double>(mean) > 1.0 - 0.1)) return tensor;
  return coo_of(tensor, stored);
}

}  // namespace thalia::formats
