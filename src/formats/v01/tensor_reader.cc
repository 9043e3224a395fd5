// Reads tensors by their offsets, which untrusted text supplies. Offsets may repeat or overlap, so
// costs are bounded over all tensors together and not one by one: copies to the size of the body,
// and so is the checking of indices and truth values. A tensor at a known offset costs nothing.
#include "formats/v01/tensor_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "base/fail.h"
#include "container/read/sparse_check.h"
#include "format/payload.h"
#include "format/v01.h"
#include "formats/v01/tensor.h"

namespace thalia::formats {
namespace {

using format::V01Encoding;

[[noreturn]] void fail(ErrorCode code, std::string_view field, std::uint64_t offset,
                       std::string value, std::string bound) {
  fail_field(code, "payload", field, offset, std::move(value), std::move(bound));
}

// Takes one field after another; every take is checked against the end of the body.
class Cursor {
 public:
  Cursor(ByteSpan body, std::uint64_t offset) : body_(body), offset_(offset) {}

  template <typename T>
  T take(std::string_view field) {
    T value;
    const ByteSpan bytes = take(sizeof value, field);
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  ByteSpan take(std::uint64_t length, std::string_view field) {
    if (offset_ > body_.size() || length > body_.size() - offset_) {
      fail(ErrorCode::out_of_bounds, field, offset_, fmt::format("{} bytes", length),
           fmt::format("{}, where the checksum begins", body_.size()));
    }
    const ByteSpan bytes = body_.subspan(offset_, length);
    offset_ += length;
    return bytes;
  }
  std::uint64_t offset() const noexcept { return offset_; }

 private:
  ByteSpan body_;
  std::uint64_t offset_;
};

TensorLayout take_layout(Cursor& cursor) {
  const std::uint64_t start = cursor.offset();
  const auto header = cursor.take<format::V01TensorHeader>("encoding");
  TensorLayout layout;
  const V01Encoding encoding = header.encoding;
  if (encoding > V01Encoding::sparse_coo) {
    fail(ErrorCode::bad_value, "encoding", start, std::to_string(format::code_of(encoding)),
         "0 (dense) or 1 (sparse_coo)");
  }
  const std::uint32_t dtype = format::code_of(format::V01DType{header.dtype});
  if (dtype >= kV01DTypes.size()) {
    fail(ErrorCode::bad_value, "dtype", start + offsetof(format::V01TensorHeader, dtype),
         std::to_string(dtype), "0 to 5");
  }
  if (header.ndim > Shape::kMaxRank) {
    fail(ErrorCode::bad_value, "ndim", start + offsetof(format::V01TensorHeader, ndim),
         std::to_string(header.ndim), fmt::format("at most {}", Shape::kMaxRank));
  }
  layout.dtype = kV01DTypes[dtype];
  std::array<std::uint64_t, Shape::kMaxRank> extents{};
  for (std::uint32_t d = 0; d < header.ndim; ++d) extents[d] = cursor.take<format::le32>("shape");
  layout.shape = Shape(std::span<const std::uint64_t>(extents).first(header.ndim));
  if (encoding != V01Encoding::sparse_coo) return layout;
  // A scalar has no coordinates.
  if (header.ndim == 0) {
    fail(ErrorCode::bad_value, "ndim", start + offsetof(format::V01TensorHeader, ndim), "0",
         "1 or more for sparse_coo");
  }
  layout.encoding = Encoding::coo;
  layout.wide_indices = true;
  layout.nnz = cursor.take<format::le64>("nnz");
  const auto elements = layout.shape.element_count();
  // More entries than elements would repeat some. Where the count overflows, any nnz is less.
  if (elements && layout.nnz > *elements) {
    fail(ErrorCode::bad_value, "nnz", cursor.offset() - sizeof(format::le64),
         std::to_string(layout.nnz), fmt::format("at most {}", *elements));
  }
  return layout;
}

bool is_aligned(const std::byte* address, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
}

void check_indices(const Tensor& tensor, std::uint64_t offset) {
  const auto parts = *format::sparse_parts(tensor.layout());
  const std::span<const std::uint64_t> indices(
      reinterpret_cast<const std::uint64_t*>(tensor.bytes().data()),
      parts.indices.length / sizeof(std::uint64_t));
  auto fault = container::find_coo_fault(tensor.shape(), tensor.nnz(), indices);
  if (!fault) return;
  throw FormatError(ErrorCode::bad_value, *std::move(fault),
                    {.section = "payload", .field = "indices", .offset = offset});
}

void check_truth_values(ByteSpan values, std::uint64_t offset) {
  const auto bad =
      std::ranges::find_if(values, [](std::byte value) { return value > std::byte{1}; });
  if (bad == values.end()) return;
  fail(ErrorCode::bad_value, "elements", offset,
       fmt::format("byte {:#04x} of boolean elements", std::to_integer<unsigned>(*bad)), "0 or 1");
}

}  // namespace

const V01TensorReader::Found& V01TensorReader::at(std::uint64_t offset) {
  const auto known = found_.find(offset);
  if (known != found_.end()) return known->second;
  // Tags may name as many offsets as a text has room for.
  if (found_.size() >= max_tensors_)
    fail_limit("region", "max_tensors", found_.size() + 1, max_tensors_);
  return found_.emplace(offset, read(offset)).first->second;
}

V01TensorReader::Found V01TensorReader::read(std::uint64_t offset) {
  Cursor cursor(body_, offset);
  const TensorLayout layout = take_layout(cursor);
  const auto length = format::payload_length(layout);
  if (!length) {
    fail(ErrorCode::out_of_bounds, "shape", offset, layout.shape.to_string(),
         "at most 2^64 - 1 bytes of elements");
  }
  const std::uint64_t payload = cursor.offset();
  all_aligned_ = all_aligned_ && payload % 64 == 0;
  const ByteSpan bytes = cursor.take(*length, "elements");
  Tensor tensor = place(layout, bytes, payload);
  const bool is_sparse = layout.encoding == Encoding::coo;
  const bool is_boolean = layout.dtype == DType::boolean;
  if (is_sparse || is_boolean) {
    // Tensors that a writer made do not overlap. Overlapping ones could be checked for ever.
    if (*length > checks_left_) {
      fail(ErrorCode::inconsistent, "_offset", offset,
           "sparse tensors or truth values over each other", "apart");
    }
    checks_left_ -= *length;
  }
  if (is_sparse) check_indices(tensor, payload);
  if (is_boolean) check_truth_values(tensor.values(), payload);
  return {std::move(tensor), cursor.offset() - offset};
}

Tensor V01TensorReader::place(const TensorLayout& layout, ByteSpan bytes, std::uint64_t offset) {
  const std::size_t alignment =
      layout.encoding == Encoding::coo ? sizeof(std::uint64_t) : dtype_alignment(layout.dtype);
  // Borrowed where the address allows it. Files of the original are not aligned.
  if (owner_ && is_aligned(bytes.data(), alignment)) return Tensor::adopt(layout, bytes, owner_);
  if (bytes.size() > copies_left_) {
    fail(ErrorCode::limit_exceeded, "elements", offset, fmt::format("{} bytes", bytes.size()),
         fmt::format("{} bytes of copies, what overlapping tensors may take together",
                     body_.size()));
  }
  copies_left_ -= bytes.size();
  // Words of 64 bits, whose alignment suits every element.
  const std::size_t words = bytes.size() / sizeof(std::uint64_t) + 1;
  const auto copy = std::make_shared_for_overwrite<std::uint64_t[]>(words);
  if (!bytes.empty()) std::memcpy(copy.get(), bytes.data(), bytes.size());
  return Tensor::adopt(layout, std::as_bytes(std::span(copy.get(), words)).first(bytes.size()),
                       copy);
}

}  // namespace thalia::formats
