// Lengths and places of the arrays of a payload, from numbers that may come from a file: every sum
// and product is checked, and one that overflows makes the result nullopt, never a smaller length.
// Writer, reader and verifier lay out payloads by these functions alone, so they cannot disagree.
#include "format/payload.h"

#include <algorithm>
#include <limits>
#include <span>

#include "format/constants.h"

namespace thalia::format {
namespace {

// Appends an array of `count` elements of `width` bytes, aligned to `alignment`, a power of two;
// false on overflow.
template <typename Parts>
bool append(Parts& parts, Extent& part, std::uint64_t count, std::uint64_t width,
            std::uint64_t alignment) {
  std::uint64_t start;
  if (__builtin_add_overflow(parts.length, alignment - 1, &start)) return false;
  part.offset = start & ~(alignment - 1);
  if (__builtin_mul_overflow(count, width, &part.length)) return false;
  return !__builtin_add_overflow(part.offset, part.length, &parts.length);
}

// Appends the values. The element type is not packed: its elements are whole bytes.
bool append_values(SparseParts& parts, DType dtype, std::uint64_t nnz) {
  return append(parts, parts.values, nnz, dtype_bits(dtype) / 8, dtype_alignment(dtype));
}

}  // namespace

Shape shape_of(const TensorEntry& entry) noexcept {
  std::uint64_t extents[kMaxDimensions];
  std::copy(std::begin(entry.shape), std::end(entry.shape), extents);
  return Shape(std::span<const std::uint64_t>(extents, entry.ndim));
}

TensorLayout layout_of(const TensorEntry& entry) noexcept {
  return {entry.dtype, shape_of(entry), entry.encoding, entry.nnz,
          (entry.flags & kTensorWideIndices) != 0};
}

TensorLayout layout_of(const DeltaTensor& side, DType dtype, const Shape& shape) noexcept {
  return {dtype, shape, side.encoding, side.nnz, (side.flags & kTensorWideIndices) != 0};
}

std::optional<SparseParts> sparse_parts(const TensorLayout& layout) noexcept {
  const auto& [dtype, shape, encoding, nnz, wide] = layout;
  if (dtype_is_packed(dtype)) return std::nullopt;
  const std::uint64_t width = wide ? 8 : 4;
  SparseParts parts;
  std::uint64_t indices = nnz;
  if (encoding == Encoding::csr) {
    std::uint64_t pointers;
    if (shape.rank() != 2 || __builtin_add_overflow(shape[0], 1, &pointers)) return std::nullopt;
    if (!append(parts, parts.row_pointers, pointers, width, width)) return std::nullopt;
  } else if (encoding != Encoding::coo || shape.rank() == 0 ||
             __builtin_mul_overflow(nnz, shape.rank(), &indices)) {
    return std::nullopt;
  }
  if (!append(parts, parts.indices, indices, width, width)) return std::nullopt;
  if (!append_values(parts, dtype, nnz)) return std::nullopt;
  return parts;
}

std::optional<std::uint64_t> payload_length(const TensorLayout& layout) noexcept {
  if (layout.encoding == Encoding::dense) return layout.shape.byte_length(layout.dtype);
  const auto parts = sparse_parts(layout);
  if (!parts) return std::nullopt;
  return parts->length;
}

bool narrow_indices_fit(const TensorLayout& layout) noexcept {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (!is_sparse(layout.encoding)) return true;
  // The last row pointer of csr is nnz. No index of coo is; its nnz may be any.
  if (layout.encoding == Encoding::csr && layout.nnz > kMost) return false;
  const auto extents = layout.shape.extents();
  return std::all_of(extents.begin(), extents.end(),
                     [](std::uint64_t extent) { return extent <= kMost; });
}

std::optional<SparseDeltaParts> sparse_delta_parts(DType dtype, const Shape& shape,
                                                   std::uint64_t listed) noexcept {
  const auto elements = shape.element_count();
  if (!elements || dtype_is_packed(dtype)) return std::nullopt;
  SparseDeltaParts parts;
  parts.blocks = *elements / kDeltaBlockElements + (*elements % kDeltaBlockElements != 0);
  // One pointer more than blocks: each block ends where the next begins, and the last at `listed`.
  if (!append(parts, parts.pointers, parts.blocks + 1, 8, 8)) return std::nullopt;
  if (!append(parts, parts.positions, listed, 2, 2)) return std::nullopt;
  if (!append(parts, parts.values, listed, dtype_bits(dtype) / 8, dtype_alignment(dtype)))
    return std::nullopt;
  return parts;
}

std::optional<QuantizedParts> quantized_parts(DType dtype, const Shape& shape, unsigned bits,
                                              std::uint32_t group_size,
                                              std::uint64_t code_length) noexcept {
  const bool narrow = dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  const auto elements = shape.element_count();
  if (!elements || (!narrow && dtype != DType::f64)) return std::nullopt;
  const std::uint64_t width = narrow ? 4 : 8;
  QuantizedParts parts;
  if (*elements != 0) parts.groups = group_size == 0 ? 1 : (*elements - 1) / group_size + 1;
  if (!append(parts, parts.widths, bits == 0 ? parts.groups : 0, 1, 1)) return std::nullopt;
  if (!append(parts, parts.minima, parts.groups, width, width)) return std::nullopt;
  if (!append(parts, parts.scales, parts.groups, width, width)) return std::nullopt;
  if (!append(parts, parts.codes, code_length, 1, 1)) return std::nullopt;
  return parts;
}

std::uint64_t quantized_code_length(std::uint64_t elements, unsigned bits) noexcept {
  // Groups are multiples of 8 elements, so only the last can end within a byte. Divides first, as
  // elements times bits may overflow.
  return elements / 8 * bits + (elements % 8 * bits + 7) / 8;
}

std::uint64_t payload_alignment(std::uint64_t logical_length) noexcept {
  return logical_length >= kPageThreshold ? kPageAlignment : kAlignment;
}

}  // namespace thalia::format
