// Sparse tensors: their arrays in place, and written out densely. No array is handed out or
// followed before find_csr_fault() or find_coo_fault() has passed over it, at every call: a view
// remembers nothing, so anybody who needs the arrays often keeps them. Index arrays are read in
// place and need alignment to 8: payloads have it, decoded copies get it from a vector of 8-byte
// numbers, and memory of the caller is checked.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/fail.h"
#include "container/file/open_file.h"
#include "container/file/zero_padding.h"
#include "container/read/sparse_check.h"
#include "container/read/tensor_reading.h"
#include "format/payload.h"
#include "io/memory/allocation_limit.h"
#include "thalia/tensor.h"

namespace thalia {
namespace {

template <typename T>
std::span<const T> array_at(ByteSpan payload, format::Extent extent) {
  return {reinterpret_cast<const T*>(payload.data() + extent.offset), extent.length / sizeof(T)};
}

[[noreturn]] void fail_index(std::uint64_t offset, std::string fault) {
  throw FormatError(ErrorCode::bad_value, std::move(fault),
                    {.section = "payload", .field = "indices", .offset = offset});
}

// `payload`: the logical bytes of a csr tensor whose entry was validated, aligned to 8. The entry's
// validation makes sure that the parts exist and lie in it.
template <typename Index>
CsrArrays<Index> csr_arrays(const TensorView& tensor, ByteSpan payload) {
  const auto parts = *format::sparse_parts(tensor.layout());
  const CsrArrays<Index> arrays{array_at<Index>(payload, parts.row_pointers),
                                array_at<Index>(payload, parts.indices),
                                payload.subspan(parts.values.offset, parts.values.length)};
  if (auto fault = container::find_csr_fault(tensor.shape(), tensor.nnz(), arrays.row_pointers,
                                             arrays.column_indices)) {
    fail_index(tensor.stored_offset(), *std::move(fault));
  }
  return arrays;
}

template <typename Index>
CooArrays<Index> coo_arrays(const TensorView& tensor, ByteSpan payload) {
  const auto parts = *format::sparse_parts(tensor.layout());
  const CooArrays<Index> arrays{array_at<Index>(payload, parts.indices),
                                payload.subspan(parts.values.offset, parts.values.length)};
  if (auto fault = container::find_coo_fault(tensor.shape(), tensor.nnz(), arrays.indices)) {
    fail_index(tensor.stored_offset(), *std::move(fault));
  }
  return arrays;
}

template <typename Index>
void scatter_csr(const TensorView& tensor, ByteSpan payload, MutableByteSpan out) {
  const CsrArrays<Index> arrays = csr_arrays<Index>(tensor, payload);
  const std::size_t width = dtype_bits(tensor.dtype()) / 8;
  const std::uint64_t columns = tensor.shape()[1];
  for (std::uint64_t row = 0; row < tensor.shape()[0]; ++row) {
    for (std::uint64_t i = arrays.row_pointers[row]; i < arrays.row_pointers[row + 1]; ++i) {
      std::memcpy(out.data() + (row * columns + arrays.column_indices[i]) * width,
                  arrays.values.data() + i * width, width);
    }
  }
}

template <typename Index>
void scatter_coo(const TensorView& tensor, ByteSpan payload, MutableByteSpan out) {
  const CooArrays<Index> arrays = coo_arrays<Index>(tensor, payload);
  const std::size_t width = dtype_bits(tensor.dtype()) / 8;
  for (std::uint64_t i = 0; i < tensor.nnz(); ++i) {
    std::uint64_t element = 0;
    for (unsigned d = 0; d < tensor.shape().rank(); ++d) {
      element = element * tensor.shape()[d] + arrays.indices[d * tensor.nnz() + i];
    }
    std::memcpy(out.data() + element * width, arrays.values.data() + i * width, width);
  }
}

}  // namespace

// For verify: the indices of any width, and the padding, which readers do not look at.
ByteSpan container::check_sparse_payload(const TensorView& tensor, ByteSpan payload) {
  const bool wide = tensor.wide_indices();
  if (tensor.encoding() == Encoding::csr) {
    wide ? static_cast<void>(csr_arrays<std::uint64_t>(tensor, payload))
         : static_cast<void>(csr_arrays<std::uint32_t>(tensor, payload));
  } else {
    wide ? static_cast<void>(coo_arrays<std::uint64_t>(tensor, payload))
         : static_cast<void>(coo_arrays<std::uint32_t>(tensor, payload));
  }
  const auto parts = *format::sparse_parts(tensor.layout());
  require_zero_padding(payload, tensor.stored_offset(), parts.indices, parts.values);
  return payload.subspan(parts.values.offset, parts.values.length);
}

CsrView TensorView::csr() const {
  return container::with_names(*file_, region_, name_, [&]() -> CsrView {
    container::require_encoding(*this, Encoding::csr);
    const ByteSpan payload = bytes();
    if (wide_indices()) return csr_arrays<std::uint64_t>(*this, payload);
    return csr_arrays<std::uint32_t>(*this, payload);
  });
}

CooView TensorView::coo() const {
  return container::with_names(*file_, region_, name_, [&]() -> CooView {
    container::require_encoding(*this, Encoding::coo);
    const ByteSpan payload = bytes();
    if (wide_indices()) return coo_arrays<std::uint64_t>(*this, payload);
    return coo_arrays<std::uint32_t>(*this, payload);
  });
}

CsrView TensorView::csr(MutableByteSpan storage) const {
  return container::with_names(*file_, region_, name_, [&]() -> CsrView {
    container::require_encoding(*this, Encoding::csr);
    container::require_aligned(storage);
    read(storage);
    if (wide_indices()) return csr_arrays<std::uint64_t>(*this, storage);
    return csr_arrays<std::uint32_t>(*this, storage);
  });
}

CooView TensorView::coo(MutableByteSpan storage) const {
  return container::with_names(*file_, region_, name_, [&]() -> CooView {
    container::require_encoding(*this, Encoding::coo);
    container::require_aligned(storage);
    read(storage);
    if (wide_indices()) return coo_arrays<std::uint64_t>(*this, storage);
    return coo_arrays<std::uint32_t>(*this, storage);
  });
}

std::uint64_t TensorView::dense_bytes() const {
  // The shape of a quantized tensor may be far larger than its payload; its side data, which is
  // validated here, ties the two together.
  static_cast<void>(detail::OpenFile::quantization_of(*this));
  return *shape_.byte_length(dtype());
}

void TensorView::read_dense(MutableByteSpan out) const {
  const bool quantized = encoding() == Encoding::quantized;
  if (!quantized && !is_sparse(encoding())) return read(out);
  container::with_names(*file_, region_, name_, [&] {
    if (out.size() != dense_bytes()) {
      fail_argument(ErrorCode::size_mismatch, "out", fmt::format("{} bytes", out.size()),
                    std::to_string(dense_bytes()));
    }
    if (quantized) return container::read_quantized(*file_, *entry_, out);
    std::vector<std::uint64_t> decoded;  // 8-byte elements, for the alignment of the index arrays
    ByteSpan payload;
    if (is_raw()) {
      payload = bytes();
    } else {
      io::MemoryBudget(file_->options().input.limits, stored_bytes())
          .take("payload", logical_bytes());
      decoded.resize(logical_bytes() / 8 + 1);
      const MutableByteSpan buffer =
          std::as_writable_bytes(std::span(decoded)).first(logical_bytes());
      read(buffer);
      payload = buffer;
    }
    // After the payload was read: if that fails, `out` stays as it was.
    std::fill(out.begin(), out.end(), std::byte{0});
    const bool csr = encoding() == Encoding::csr;
    if (wide_indices()) {
      csr ? scatter_csr<std::uint64_t>(*this, payload, out)
          : scatter_coo<std::uint64_t>(*this, payload, out);
    } else {
      csr ? scatter_csr<std::uint32_t>(*this, payload, out)
          : scatter_coo<std::uint32_t>(*this, payload, out);
    }
  });
}

}  // namespace thalia
