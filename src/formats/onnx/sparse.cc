// Each position has to lie inside the shape and above the one before it, whether it is read or
// written: Rising checks them one by one. They fit 64 bits, since shapes of 2^63 elements or more
// are refused before the first one is computed.
#include "formats/onnx/sparse.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "format/little_endian.h"
#include "format/payload.h"
#include "state/tensor/counted_tensor.h"

namespace thalia::formats::onnx {
namespace {

constexpr std::uint64_t kMostElements = std::numeric_limits<std::int64_t>::max();

[[noreturn]] void refuse_index(std::uint64_t element, std::string value, std::string bound) {
  throw FormatError(ErrorCode::out_of_bounds, fmt::format("index of stored element {}", element),
                    {.section = "SparseTensorProto",
                     .field = "indices",
                     .value = std::move(value),
                     .bound = std::move(bound)});
}

// Positions one after the other, each of which lies in the shape and after the one before it.
class Rising {
 public:
  explicit Rising(const Shape& shape) : elements_(*shape.element_count()) {}
  void check(std::uint64_t position) {
    if (position >= elements_)
      refuse_index(count_, std::to_string(position), fmt::format("less than {}", elements_));
    if (count_ > 0 && position <= last_)
      refuse_index(count_, std::to_string(position), fmt::format("more than {}", last_));
    last_ = position;
    ++count_;
  }

 private:
  std::uint64_t elements_;
  std::uint64_t last_ = 0;
  std::uint64_t count_ = 0;
};

std::uint64_t load_index(const std::byte* at, bool wide) {
  format::le64 value(0);
  std::memcpy(&value, at, wide ? 8 : 4);
  return value;
}

void store_index(std::byte* at, std::uint64_t index, bool wide) {
  const format::le64 value(index);
  std::memcpy(at, &value, wide ? 8 : 4);
}

TensorLayout coo_layout(const Message& message, const OnnxStored& stored, const Shape& shape) {
  const auto refuse = [&](const char* field, const Shape& value, std::string bound) {
    message.fail(ErrorCode::inconsistent, field, message.extent().offset, value.to_string(),
                 std::move(bound));
  };
  const Shape& values = stored.values.shape;
  const Shape& indices = stored.indices->shape;
  if (values.rank() != 1) refuse("values", values, "one dimension");
  if (stored.indices->type->dtype != DType::i64) {
    message.fail(ErrorCode::bad_value, "indices", message.extent().offset,
                 stored.indices->type->name, "INT64");
  }
  const std::uint64_t nnz = values[0];
  if (indices != Shape{nnz} && indices != Shape{nnz, shape.rank()})
    refuse("indices", indices, fmt::format("[{0}] or [{0}, {1}]", nnz, shape.rank()));
  if (shape.element_count().value_or(kMostElements + 1) > kMostElements)
    refuse("dims", shape, "less than 2^63 elements");
  TensorLayout layout{
      .dtype = stored.values.type->dtype, .shape = shape, .encoding = Encoding::coo, .nnz = nnz};
  layout.wide_indices = !format::narrow_indices_fit(layout);
  if (shape.rank() == 0 || dtype_is_packed(layout.dtype)) {
    throw UnsupportedError(
        ErrorCode::unsupported_feature,
        "a sparse scalar, or sparse elements that are no whole bytes",
        {.section = "SparseTensorProto",
         .field = "values",
         .value = fmt::format("{} {}", stored.values.type->name, shape.to_string())});
  }
  if (!format::payload_length(layout)) refuse("dims", shape, "less than 2^64 bytes");
  return layout;
}

}  // namespace

OnnxStored parse_sparse(Message&& message, TensorLayout& layout) {
  OnnxStored stored;
  Dims dims;
  bool has_values = false;
  Field field;
  while (message.next(field)) {
    if (field.number == 3) dims.add(message, field);
    if (field.number != 1 && field.number != 2) continue;
    const char* const name = field.number == 1 ? "values" : "indices";
    if (field.number == 1 ? has_values : stored.indices.has_value())
      message.fail(ErrorCode::inconsistent, name, field.offset, "", "", "the field repeats");
    TensorProto tensor = parse_tensor_proto(message.inner(field, "TensorProto"));
    if (field.number == 1) {
      stored.values = std::move(tensor);
      has_values = true;
    } else {
      stored.indices = std::move(tensor);
    }
  }
  if (!has_values || !stored.indices) {
    message.fail(ErrorCode::bad_value, has_values ? "indices" : "values", message.extent().offset,
                 "none", "a tensor");
  }
  try {
    layout = coo_layout(message, stored, dims.shape());
  } catch (Error& error) {
    error.add_tensor(printable(stored.values.name));
    throw;
  }
  return stored;
}

Tensor coo_of(const TensorLayout& layout, const Tensor& values, const Tensor& indices,
              io::MemoryBudget& budget) {
  const format::SparseParts parts = *format::sparse_parts(layout);
  const Shape& shape = layout.shape;
  const unsigned rank = shape.rank();
  const bool linear = indices.shape().rank() == 1;
  const bool wide = layout.wide_indices;
  const std::uint64_t width = wide ? 8 : 4;
  return state::counted_tensor(budget, "SparseTensorProto", layout, [&](MutableByteSpan out) {
    const std::byte* in = indices.bytes().data();
    Rising rising(shape);
    for (std::uint64_t i = 0; i < layout.nnz; ++i) {
      std::uint64_t position = 0;
      std::array<std::uint64_t, Shape::kMaxRank> coordinates{};
      if (linear) {
        position = load_index(in, true);
        in += 8;
        rising.check(position);
        for (unsigned d = rank; d-- > 0; position /= shape[d]) coordinates[d] = position % shape[d];
      } else {
        for (unsigned d = 0; d < rank; ++d, in += 8) {
          coordinates[d] = load_index(in, true);
          if (coordinates[d] >= shape[d])
            refuse_index(i, std::to_string(coordinates[d]), fmt::format("less than {}", shape[d]));
          position = position * shape[d] + coordinates[d];
        }
        rising.check(position);
      }
      for (unsigned d = 0; d < rank; ++d)
        store_index(out.data() + (d * layout.nnz + i) * width, coordinates[d], wide);
    }
    const std::uint64_t end = parts.indices.offset + parts.indices.length;
    std::fill_n(out.begin() + static_cast<std::ptrdiff_t>(end), parts.values.offset - end,
                std::byte{0});
    std::ranges::copy(values.bytes(),
                      out.begin() + static_cast<std::ptrdiff_t>(parts.values.offset));
  });
}

SparseWriter::SparseWriter(const TensorLayout& layout, PieceSink positions, PieceSink values)
    : layout_(layout),
      positions_(std::move(positions)),
      values_(std::move(values)),
      index_bytes_(format::sparse_parts(layout)->values.offset) {
  if (index_bytes_ == 0) write_positions();
}

void SparseWriter::take(ByteSpan piece) {
  if (!written_) {
    const std::size_t part = std::min<std::uint64_t>(piece.size(), index_bytes_ - indices_.size());
    indices_.insert(indices_.end(), piece.begin(),
                    piece.begin() + static_cast<std::ptrdiff_t>(part));
    piece = piece.subspan(part);
    if (indices_.size() == index_bytes_) write_positions();
  }
  if (!piece.empty()) values_(piece);
}

std::uint64_t SparseWriter::index(std::uint64_t i) const {
  return load_index(indices_.data() + i * (layout_.wide_indices ? 8 : 4), layout_.wide_indices);
}

std::uint64_t SparseWriter::position_of_coo(std::uint64_t i) const {
  std::uint64_t position = 0;
  for (unsigned d = 0; d < layout_.shape.rank(); ++d) {
    const std::uint64_t coordinate = index(d * layout_.nnz + i);
    if (coordinate >= layout_.shape[d])
      refuse_index(i, std::to_string(coordinate), fmt::format("less than {}", layout_.shape[d]));
    position = position * layout_.shape[d] + coordinate;
  }
  return position;
}

void SparseWriter::check_rows() const {
  const std::uint64_t rows = layout_.shape[0];
  std::uint64_t last = 0;
  for (std::uint64_t row = 0; row <= rows; ++row) {
    const std::uint64_t pointer = index(row);
    const std::uint64_t least = row == rows ? layout_.nnz : last;
    const std::uint64_t most = row == 0 ? 0 : layout_.nnz;
    if (pointer < least || pointer > most) {
      throw FormatError(ErrorCode::out_of_bounds, fmt::format("pointer of row {}", row),
                        {.section = "csr",
                         .field = "row_pointers",
                         .value = std::to_string(pointer),
                         .bound = fmt::format("{} to {}", least, most)});
    }
    last = pointer;
  }
}

void SparseWriter::write_positions() {
  constexpr std::size_t kGathered = 8192;
  std::vector<format::le64> gathered;
  gathered.reserve(kGathered);
  Rising rising(layout_.shape);
  const bool csr = layout_.encoding == Encoding::csr;
  if (csr) check_rows();
  std::uint64_t row = 0;
  for (std::uint64_t i = 0; i < layout_.nnz; ++i) {
    std::uint64_t position;
    if (csr) {
      while (index(row + 1) <= i) ++row;
      const std::uint64_t column = index(layout_.shape[0] + 1 + i);
      if (column >= layout_.shape[1])
        refuse_index(i, std::to_string(column), fmt::format("less than {}", layout_.shape[1]));
      position = row * layout_.shape[1] + column;
    } else {
      position = position_of_coo(i);
    }
    rising.check(position);
    gathered.emplace_back(position);
    if (gathered.size() == kGathered) {
      positions_(as_byte_span(gathered));
      gathered.clear();
    }
  }
  if (!gathered.empty()) positions_(as_byte_span(gathered));
  written_ = true;
  indices_ = {};
}

}  // namespace thalia::formats::onnx
