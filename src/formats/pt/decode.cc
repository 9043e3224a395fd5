// Tensors whose elements are made of several others: quantized and sparse ones.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/fail.h"
#include "format/payload.h"
#include "formats/pt/contents.h"
#include "state/tensor/counted_tensor.h"

namespace thalia::formats::pt {
namespace {

// The integers of a tensor of i64 or i32.
class Integers {
 public:
  explicit Integers(const Tensor& tensor)
      : bytes_(tensor.bytes()), wide_(tensor.dtype() == DType::i64) {}

  std::size_t size() const noexcept { return bytes_.size() / (wide_ ? 8 : 4); }
  std::int64_t operator[](std::size_t i) const noexcept {
    return wide_ ? number<std::int64_t>(i) : number<std::int32_t>(i);
  }
  std::int64_t back() const noexcept { return (*this)[size() - 1]; }

 private:
  template <typename T>
  T number(std::size_t i) const noexcept {
    T number = 0;
    std::memcpy(&number, bytes_.data() + i * sizeof(T), sizeof(T));
    return number;
  }

  ByteSpan bytes_;
  bool wide_;
};

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

void store_index(std::byte* array, bool wide, std::size_t i, std::int64_t index) noexcept {
  if (wide) {
    std::memcpy(array + 8 * i, &index, 8);
  } else {
    const auto narrow = static_cast<std::uint32_t>(index);
    std::memcpy(array + 4 * i, &narrow, 4);
  }
}

// The order in which the entries of a coo tensor ascend.
std::vector<std::size_t> entry_order(const Shape& shape, const Integers& indices, std::size_t nnz,
                                     bool coalesced, io::MemoryBudget& budget) {
  auto places = budget.vector<std::uint64_t>("data", nnz);
  for (unsigned d = 0; d < shape.rank(); ++d) {
    for (std::size_t i = 0; i < nnz; ++i) {
      const std::int64_t index = indices[d * nnz + i];
      if (index < 0 || static_cast<std::uint64_t>(index) >= shape[d])
        fail_index("indices", index, fmt::format("less than {}", shape[d]));
      places[i] = places[i] * shape[d] + static_cast<std::uint64_t>(index);
    }
  }
  auto order = budget.vector<std::size_t>("data", nnz);
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

void check_rows(const Integers& rows, const Integers& columns, std::uint64_t n_columns) {
  const auto nnz = static_cast<std::int64_t>(columns.size());
  if (rows[0] != 0) fail_index("crow_indices", rows[0], "0 first");
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

std::vector<double> Contents::numbers(const Part& part, NodeId node,
                                      io::MemoryBudget& budget) const {
  const Tensor tensor = read(part, node, false, budget);
  auto numbers = budget.vector<double>("data", tensor.element_count());
  const std::byte* const bytes = tensor.bytes().data();
  if (tensor.dtype() == DType::i64 || tensor.dtype() == DType::i32) {
    const Integers integers(tensor);
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

Tensor Contents::dequantized(const Part& part, const TensorRecord& tensor, const Tensor& codes,
                             io::MemoryBudget& budget) const {
  const TorchQuantizer& quantizer = tensor.quantizer;
  std::vector<double> scales{quantizer.scale};
  std::vector<double> zeros{static_cast<double>(quantizer.zero_point)};
  std::uint64_t run = 1;  // elements from one channel to the next
  if (quantizer.per_channel) {
    scales = numbers(part, quantizer.scales, budget);
    zeros = numbers(part, quantizer.zero_points, budget);
    for (unsigned d = quantizer.axis + 1; d < tensor.shape.rank(); ++d) run *= tensor.shape[d];
  }
  const TensorLayout layout{.dtype = DType::f32, .shape = tensor.shape};
  return state::counted_tensor(budget, "data", layout, [&](MutableByteSpan out) {
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

// The arrays of the payload are written where they belong: rows and columns, or the coordinates
// entry by entry in their order, then the values.
Tensor Contents::read_sparse(const Part& part, const TensorRecord& tensor,
                             io::MemoryBudget& budget) const {
  const Tensor stored_values = read(part, tensor.values, false, budget);
  const Tensor stored_indices = read(part, tensor.indices, false, budget);
  const TensorLayout layout = sparse_layout(tensor);
  const Integers indices(stored_indices);
  const ByteSpan values = stored_values.bytes();
  const bool wide = layout.wide_indices;
  // Gaps between the arrays are zeros.
  const auto with_arrays = [&](const auto& write) {
    return state::counted_tensor(budget, "data", layout, [&](MutableByteSpan out) {
      std::ranges::fill(out, std::byte{0});
      write(*format::sparse_parts(layout), out.data());
    });
  };
  if (tensor.form == Form::sparse_csr) {
    const Tensor stored_columns = read(part, tensor.columns, false, budget);
    const Integers columns(stored_columns);
    check_rows(indices, columns, tensor.shape[1]);
    return with_arrays([&](const format::SparseParts& parts, std::byte* out) {
      for (std::size_t i = 0; i < indices.size(); ++i)
        store_index(out + parts.row_pointers.offset, wide, i, indices[i]);
      for (std::size_t i = 0; i < columns.size(); ++i)
        store_index(out + parts.indices.offset, wide, i, columns[i]);
      std::ranges::copy(values, out + parts.values.offset);
    });
  }
  const std::size_t nnz = tensor.nnz;
  const std::vector<std::size_t> order =
      entry_order(tensor.shape, indices, nnz, tensor.coalesced, budget);
  return with_arrays([&](const format::SparseParts& parts, std::byte* out) {
    for (unsigned d = 0; d < tensor.shape.rank(); ++d) {
      for (std::size_t i = 0; i < nnz; ++i)
        store_index(out + parts.indices.offset, wide, d * nnz + i, indices[d * nnz + order[i]]);
    }
    const std::size_t width = dtype_bits(tensor.dtype) / 8;
    for (std::size_t i = 0; i < nnz; ++i)
      std::memcpy(out + parts.values.offset + i * width, values.data() + order[i] * width, width);
  });
}

}  // namespace thalia::formats::pt
