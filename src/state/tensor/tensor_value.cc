// A tensor by value: its layout, its bytes, and who keeps the bytes alive. That is a buffer of its
// own, shared by copies until one of them writes; an owner such as a view of a mapped file; or
// nobody, for borrowed bytes, which the caller has to keep. Bytes are as long as the layout says,
// always: each way in checks it. Copying is cheap and mutable_bytes() is the only place that copies
// elements.

#include "thalia/state/tensor_value.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "base/fail.h"
#include "container/plan/sparse_pieces.h"
#include "format/payload.h"
#include "io/memory/allocation_limit.h"
#include "io/memory/huge_pages.h"

namespace thalia {
namespace {

// The alignment of a buffer's first byte: that of a payload in a file, and enough for any vector
// instruction.
constexpr std::size_t kBufferAlignment = 64;

std::uint64_t require_length(const TensorLayout& layout) {
  const auto length = format::payload_length(layout);
  // Half of the address space, which is what pointer differences can express.
  if (!length || *length > std::numeric_limits<std::size_t>::max() / 2) {
    fail_argument(ErrorCode::size_mismatch, "shape",
                  fmt::format("{} {}{}", encoding_name(layout.encoding), dtype_name(layout.dtype),
                              layout.shape.to_string()),
                  "a layout of docs/format/format.md, of less bytes than an address space has");
  }
  return *length;
}

void require_size(const TensorLayout& layout, ByteSpan bytes) {
  const std::uint64_t length = require_length(layout);
  if (bytes.size() != length) {
    fail_argument(ErrorCode::size_mismatch, "bytes", fmt::format("{} bytes", bytes.size()),
                  std::to_string(length));
  }
}

}  // namespace

struct Tensor::Buffer {
  explicit Buffer(std::size_t length)
      : size(length),
        // Tensors are large: in huge pages they take fewer page faults when they are first written.
        alignment(std::align_val_t(io::huge_page_alignment(length, kBufferAlignment))),
        // At least one byte, so that data is never null for an empty tensor.
        data(static_cast<std::byte*>(::operator new(std::max<std::size_t>(length, 1), alignment))) {
    io::prefer_huge_pages(bytes());
  }
  ~Buffer() { ::operator delete(data, alignment); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  MutableByteSpan bytes() const { return {data, size}; }

  std::size_t size;
  std::align_val_t alignment;
  std::byte* data;
};

Tensor::Tensor() : layout_{.shape = {0}} {}

Tensor::Tensor(const TensorLayout& layout, std::shared_ptr<Buffer> buffer)
    : layout_(layout), bytes_(buffer->bytes()), buffer_(std::move(buffer)) {}

Tensor Tensor::zeros(DType dtype, const Shape& shape) {
  return filled({.dtype = dtype, .shape = shape},
                [](MutableByteSpan bytes) { std::fill(bytes.begin(), bytes.end(), std::byte{0}); });
}

Tensor Tensor::copy_of(DType dtype, const Shape& shape, ByteSpan bytes) {
  Tensor tensor = borrow(dtype, shape, bytes);
  tensor.mutable_bytes();
  return tensor;
}

template <typename Index>
Tensor Tensor::csr(DType dtype, const Shape& shape, CsrArrays<Index> arrays) {
  TensorSpec spec{.dtype = dtype, .shape = shape};
  const std::vector<ByteSpan> pieces = container::sparse_pieces(spec, arrays);
  return from_pieces(spec.layout(), pieces);
}

template <typename Index>
Tensor Tensor::coo(DType dtype, const Shape& shape, CooArrays<Index> arrays) {
  TensorSpec spec{.dtype = dtype, .shape = shape};
  const std::vector<ByteSpan> pieces = container::sparse_pieces(spec, arrays);
  return from_pieces(spec.layout(), pieces);
}

template Tensor Tensor::csr(DType, const Shape&, CsrArrays<std::uint32_t>);
template Tensor Tensor::csr(DType, const Shape&, CsrArrays<std::uint64_t>);
template Tensor Tensor::coo(DType, const Shape&, CooArrays<std::uint32_t>);
template Tensor Tensor::coo(DType, const Shape&, CooArrays<std::uint64_t>);

Tensor Tensor::filled(const TensorLayout& layout,
                      const std::function<void(MutableByteSpan)>& fill) {
  auto buffer = std::make_shared<Buffer>(require_length(layout));
  fill(buffer->bytes());
  return {layout, std::move(buffer)};
}

Tensor Tensor::from_pieces(const TensorLayout& layout, std::span<const ByteSpan> pieces) {
  return filled(layout, [&](MutableByteSpan bytes) {
    std::byte* out = bytes.data();
    for (const ByteSpan piece : pieces) out = std::copy(piece.begin(), piece.end(), out);
  });
}

Tensor Tensor::borrow(DType dtype, const Shape& shape, ByteSpan bytes) {
  return adopt({.dtype = dtype, .shape = shape}, bytes, nullptr);
}

Tensor Tensor::adopt(const TensorLayout& layout, ByteSpan bytes,
                     std::shared_ptr<const void> owner) {
  require_size(layout, bytes);
  Tensor tensor;
  tensor.layout_ = layout;
  tensor.bytes_ = bytes;
  tensor.owner_ = std::move(owner);
  return tensor;
}

Tensor Tensor::from(const TensorView& view, const ReadLimits& limits) {
  // Codes are restored; in memory a tensor is never quantized.
  if (view.encoding() == Encoding::quantized) {
    io::MemoryBudget budget(limits, view.stored_bytes());
    budget.take("payload", view.dense_bytes());
    if (!view.is_raw()) budget.take("payload", view.logical_bytes());  // the codes, beside them
    return filled({.dtype = view.dtype(), .shape = view.shape()},
                  [&](MutableByteSpan bytes) { view.read_dense(bytes); });
  }
  const TensorLayout layout = view.layout();
  // The copied view keeps the file open and mapped for as long as the tensor lives.
  if (view.is_raw()) return adopt(layout, view.bytes(), std::make_shared<TensorView>(view));
  io::MemoryBudget(limits, view.stored_bytes()).take("payload", view.logical_bytes());
  return filled(layout, [&](MutableByteSpan bytes) { view.read(bytes); });
}

Tensor Tensor::owned() const {
  Tensor tensor = *this;
  if (!buffer_) tensor.mutable_bytes();
  return tensor;
}

MutableByteSpan Tensor::mutable_bytes() {
  // Copy on write: borrowed and adopted bytes are never written, shared ones are not written under
  // another tensor.
  if (!buffer_ || buffer_.use_count() != 1) {
    auto copy = std::make_shared<Buffer>(bytes_.size());
    if (!bytes_.empty()) std::memcpy(copy->data, bytes_.data(), bytes_.size());
    buffer_ = std::move(copy);
    bytes_ = buffer_->bytes();
    owner_ = nullptr;
  } else {
    // use_count() orders nothing. Another thread may just have read the bytes and dropped its copy:
    // a copy that is dropped here is counted down after that one, and writing comes after both.
    std::shared_ptr<Buffer>(buffer_).reset();
  }
  return buffer_->bytes();
}

void Tensor::check_typed(DType wanted, std::size_t alignment) const {
  if (layout_.dtype != wanted) {
    fail_argument(ErrorCode::dtype_mismatch, "dtype", std::string(dtype_name(layout_.dtype)),
                  std::string(dtype_name(wanted)));
  }
  if (!is_dense()) {
    fail_argument(ErrorCode::wrong_state, "encoding", std::string(encoding_name(encoding())),
                  "dense");
  }
  const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
  if (!bytes_.empty() && address % alignment != 0) {
    fail_argument(ErrorCode::wrong_state, "bytes", fmt::format("address {:#x}", address),
                  fmt::format("a multiple of {}", alignment));
  }
}

ByteSpan Tensor::values() const noexcept {
  if (is_dense()) return bytes_;
  const auto parts = format::sparse_parts(layout_);
  return bytes_.subspan(parts->values.offset, parts->values.length);
}

bool operator==(const Tensor& a, const Tensor& b) noexcept {
  return a.layout_ == b.layout_ &&
         (a.bytes_.data() == b.bytes_.data() || std::ranges::equal(a.bytes_, b.bytes_));
}

}  // namespace thalia
