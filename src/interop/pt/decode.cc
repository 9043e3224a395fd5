// Tensors whose elements are made of several others: quantized and sparse ones.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "base/fail.h"
#include "interop/pt/contents.h"
#include "io/allocation_limit.h"

namespace thalia::interop::pt {
namespace {

// Integers of a tensor of i64 or i32.
std::vector<std::int64_t> integers_of(const Tensor& tensor) {
  std::vector<std::int64_t> integers(tensor.element_count());
  const std::byte* const bytes = tensor.bytes().data();
  for (std::size_t i = 0; i < integers.size(); ++i) {
    if (tensor.dtype() == DType::i64) {
      std::memcpy(&integers[i], bytes + 8 * i, 8);
    } else {
      std::int32_t number = 0;
      std::memcpy(&number, bytes + 4 * i, 4);
      integers[i] = number;
    }
  }
  return integers;
}

double code_at(DType dtype, ByteSpan codes, std::size_t i) noexcept {
  if (dtype == DType::i8) return static_cast<std::int8_t>(codes[i]);
  if (dtype == DType::u8) return static_cast<std::uint8_t>(codes[i]);
  std::int32_t code = 0;
  std::memcpy(&code, codes.data() + 4 * i, 4);
  return code;
}

[[noreturn]] void fail_index(std::string_view field, std::int64_t value, std::string bound) {
  throw FormatError(ErrorCode::out_of_bounds, {},
                    {.section = "data",
                     .field = std::string(field),
                     .value = std::to_string(value),
                     .bound = std::move(bound)});
}

template <typename Index>
std::vector<Index> narrowed(const std::vector<std::int64_t>& integers) {
  return {integers.begin(), integers.end()};
}

// The order in which the entries of a coo tensor ascend.
std::vector<std::size_t> entry_order(const Shape& shape, const std::vector<std::int64_t>& indices,
                                     std::size_t nnz, bool coalesced) {
  std::vector<std::uint64_t> places(nnz);
  for (unsigned d = 0; d < shape.rank(); ++d) {
    for (std::size_t i = 0; i < nnz; ++i) {
      const std::int64_t index = indices[d * nnz + i];
      if (index < 0 || static_cast<std::uint64_t>(index) >= shape[d])
        fail_index("indices", index, fmt::format("less than {}", shape[d]));
      places[i] = places[i] * shape[d] + static_cast<std::uint64_t>(index);
    }
  }
  std::vector<std::size_t> order(nnz);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto ascends = [&](std::size_t a, std::size_t b) { return places[a] < places[b]; };
  if (!std::is_sorted(order.begin(), order.end(), ascends)) {
    if (coalesced) fail_index("indices", 0, "entries in ascending order, as coalesced ones are");
    std::sort(order.begin(), order.end(), ascends);
  }
  for (std::size_t i = 1; i < nnz; ++i) {
    if (places[order[i - 1]] != places[order[i]]) continue;
    if (coalesced) fail_index("indices", 0, "each entry once, as coalesced ones are");
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "a sparse tensor with two values for an element; save its coalesce()",
                           {.section = "data"});
  }
  return order;
}

void check_rows(const std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& columns,
                std::uint64_t n_columns) {
  const auto nnz = static_cast<std::int64_t>(columns.size());
  if (rows.front() != 0) fail_index("crow_indices", rows.front(), "0 first");
  if (rows.back() != nnz)
    fail_index("crow_indices", rows.back(), fmt::format("{} last", columns.size()));
  for (std::size_t r = 1; r < rows.size(); ++r) {
    if (rows[r] < rows[r - 1] || rows[r] > nnz)
      fail_index("crow_indices", rows[r], fmt::format("{} to {}", rows[r - 1], nnz));
    for (auto i = static_cast<std::size_t>(rows[r - 1]); i < static_cast<std::size_t>(rows[r]);
         ++i) {
      const bool first = i == static_cast<std::size_t>(rows[r - 1]);
      if (columns[i] < 0 || static_cast<std::uint64_t>(columns[i]) >= n_columns ||
          (!first && columns[i] <= columns[i - 1]))
        fail_index("col_indices", columns[i], fmt::format("ascending, less than {}", n_columns));
    }
  }
}

}  // namespace

std::vector<double> Contents::numbers(const Part& part, NodeId node) const {
  const Tensor tensor = read(part, node, false);
  std::vector<double> numbers(tensor.element_count());
  const std::byte* const bytes = tensor.bytes().data();
  if (tensor.dtype() == DType::i64 || tensor.dtype() == DType::i32) {
    const std::vector<std::int64_t> integers = integers_of(tensor);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(integers[i]);
  } else if (tensor.dtype() == DType::f64) {
    std::memcpy(numbers.data(), bytes, tensor.bytes().size());
  } else {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      float number = 0;
      std::memcpy(&number, bytes + 4 * i, 4);
      numbers[i] = static_cast<double>(number);
    }
  }
  return numbers;
}

Tensor Contents::dequantized(const Part& part, const TensorRecord& tensor,
                             const Tensor& codes) const {
  const Quantizer& quantizer = tensor.quantizer;
  std::vector<double> scales{quantizer.scale};
  std::vector<double> zeros{static_cast<double>(quantizer.zero_point)};
  std::uint64_t run = 1;  // elements from one channel to the next
  if (quantizer.per_channel) {
    scales = numbers(part, quantizer.scales);
    zeros = numbers(part, quantizer.zero_points);
    for (unsigned d = quantizer.axis + 1; d < tensor.shape.rank(); ++d) run *= tensor.shape[d];
  }
  const TensorLayout layout{.dtype = DType::f32, .shape = tensor.shape};
  io::check_allocation("data", *tensor.shape.byte_length(DType::f32), limits_,
                       codes.bytes().size());
  return Tensor::filled(layout, [&](MutableByteSpan out) {
    for (std::size_t i = 0; i < out.size() / 4; ++i) {
      const std::size_t channel = i / run % scales.size();
      const double code = code_at(tensor.dtype, codes.bytes(), i);
      // As torch: a difference of integers times a float.
      const float value =
          static_cast<float>(code - zeros[channel]) * static_cast<float>(scales[channel]);
      std::memcpy(out.data() + 4 * i, &value, 4);
    }
  });
}

Tensor Contents::read_sparse(const Part& part, const TensorRecord& tensor) const {
  const Tensor stored_values = read(part, tensor.values, false);
  const Tensor stored_indices = read(part, tensor.indices, false);
  io::check_allocation("data", 3 * (stored_indices.bytes().size() + stored_values.bytes().size()),
                       limits_, stored_indices.bytes().size() + stored_values.bytes().size());
  const TensorLayout layout = sparse_layout(tensor);
  std::vector<std::int64_t> indices = integers_of(stored_indices);
  if (tensor.form == Form::sparse_csr) {
    const std::vector<std::int64_t> columns = integers_of(read(part, tensor.columns, false));
    check_rows(indices, columns, tensor.shape[1]);
    if (layout.wide_indices) {
      const auto rows = narrowed<std::uint64_t>(indices), wide = narrowed<std::uint64_t>(columns);
      return Tensor::csr(tensor.dtype, tensor.shape,
                         CsrArrays<std::uint64_t>{rows, wide, stored_values.bytes()});
    }
    const auto rows = narrowed<std::uint32_t>(indices), narrow = narrowed<std::uint32_t>(columns);
    return Tensor::csr(tensor.dtype, tensor.shape,
                       CsrArrays<std::uint32_t>{rows, narrow, stored_values.bytes()});
  }
  const std::size_t nnz = tensor.nnz;
  const std::vector<std::size_t> order = entry_order(tensor.shape, indices, nnz, tensor.coalesced);
  std::vector<std::int64_t> sorted(indices.size());
  for (unsigned d = 0; d < tensor.shape.rank(); ++d)
    for (std::size_t i = 0; i < nnz; ++i) sorted[d * nnz + i] = indices[d * nnz + order[i]];
  const std::size_t width = dtype_bits(tensor.dtype) / 8;
  std::vector<std::byte> values(stored_values.bytes().size());
  for (std::size_t i = 0; i < nnz; ++i)
    std::memcpy(values.data() + i * width, stored_values.bytes().data() + order[i] * width, width);
  if (layout.wide_indices) {
    const auto wide = narrowed<std::uint64_t>(sorted);
    return Tensor::coo(tensor.dtype, tensor.shape, CooArrays<std::uint64_t>{wide, values});
  }
  const auto narrow = narrowed<std::uint32_t>(sorted);
  return Tensor::coo(tensor.dtype, tensor.shape, CooArrays<std::uint32_t>{narrow, values});
}

}  // namespace thalia::interop::pt
