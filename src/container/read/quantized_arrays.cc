// Groups may have widths of their own, so where the codes of a group begin is known only from all
// groups before it. The constructor walks them once, checks them, and keeps that place for
// every piece of kPieceElements; then any piece is restored alone, on any thread. Memory is 8 bytes
// for each 65,536 elements. After the constructor every width is at most 8, every parameter finite,
// and all codes lie in the payload, so restore() checks nothing. docs/format/format.md,
// "quantized".
#include "container/read/quantized_arrays.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/parallel.h"
#include "codec/lossy/code_packing.h"
#include "format/payload.h"
#include "thalia/types.h"

namespace thalia::container {
namespace {

// Codes that are unpacked at a time, into a buffer on the stack. A multiple of 8, so that each
// batch starts at a whole byte whatever the width.
constexpr std::uint64_t kCodes = 4096;

template <typename T>
double number_at(ByteSpan array, std::uint64_t i) noexcept {
  T number;
  std::memcpy(&number, array.data() + i * sizeof(T), sizeof(T));
  return static_cast<double>(number);
}

}  // namespace

QuantizedView quantized_view(DType dtype, unsigned bits, std::uint64_t group_size,
                             const format::QuantizedParts& parts, ByteSpan logical) noexcept {
  const auto array = [&](const format::Extent& place) {
    return logical.subspan(place.offset, place.length);
  };
  const ByteSpan widths = array(parts.widths);
  return {.bits = bits,
          .group_size = group_size,
          .groups = parts.groups,
          .widths = {reinterpret_cast<const std::uint8_t*>(widths.data()), widths.size()},
          .parameter_dtype = codec::parameter_dtype(dtype),
          .minima = array(parts.minima),
          .scales = array(parts.scales),
          .codes = array(parts.codes)};
}

QuantizedArrays::QuantizedArrays(const format::TensorEntry& entry,
                                 const format::QuantizedSideData& side, ByteSpan logical)
    : offset_(entry.stored_offset), dtype_(entry.dtype) {
  const Shape shape = format::shape_of(entry);
  elements_ = shape.element_count().value_or(0);
  const format::QuantizedParts parts =
      *format::quantized_parts(dtype_, shape, side.bits, side.group_size, side.code_length);
  view_ = quantized_view(dtype_, side.bits,
                         side.group_size == 0 ? elements_ : std::uint64_t{side.group_size}, parts,
                         logical);
  padding_ = logical.subspan(parts.widths.length, parts.minima.offset - parts.widths.length);
  check();
}

QuantizedArrays::QuantizedArrays(DType dtype, std::uint64_t elements, const QuantizedView& arrays)
    : offset_(0), dtype_(dtype), elements_(elements), view_(arrays) {
  const auto must_be = [](const char* what, std::uint64_t is, std::uint64_t expected) {
    if (is == expected) return;
    fail_argument(ErrorCode::size_mismatch, what, std::to_string(is), std::to_string(expected));
  };
  const std::uint64_t size = view_.group_size;
  // Codes of a group begin at a whole byte, and so does every piece that is restored alone.
  if (size % 8 != 0 && size != elements) {
    fail_argument(ErrorCode::bad_argument, "group_size", std::to_string(size),
                  "a multiple of 8, or all elements");
  }
  if (elements != 0 && size == 0)
    fail_argument(ErrorCode::bad_argument, "group_size", "0", "1 or more");
  must_be("groups", view_.groups, elements == 0 ? 0 : (elements - 1) / size + 1);
  if (view_.bits > codec::kMaxQuantizedBits)
    fail_argument(ErrorCode::bad_argument, "bits", std::to_string(view_.bits), "0 to 8");
  must_be("widths", view_.widths.size(), view_.bits == 0 ? view_.groups : 0);
  if (view_.parameter_dtype != codec::parameter_dtype(dtype)) {
    fail_argument(ErrorCode::dtype_mismatch, "parameter_dtype",
                  std::string(dtype_name(view_.parameter_dtype)),
                  std::string(dtype_name(codec::parameter_dtype(dtype))));
  }
  const std::uint64_t bytes = view_.groups * (dtype_bits(view_.parameter_dtype) / 8);
  must_be("minima", view_.minima.size(), bytes);
  must_be("scales", view_.scales.size(), bytes);
  check();
}

void QuantizedArrays::check() {
  starts_.reserve(elements_ / kPieceElements + 1);
  std::uint64_t start = 0;
  for (std::uint64_t group = 0; group < view_.groups; ++group) {
    const std::uint64_t end = group * view_.group_size + group_elements(group);
    // A group may span many pieces, and a piece many groups: every piece that begins in this group
    // gets the start of its codes.
    while (starts_.size() * kPieceElements < end) starts_.push_back(start);
    if (width(group) > codec::kMaxQuantizedBits)
      fail("widths", group, std::to_string(width(group)), "0 to 8");
    start += codec::packed_bytes(group_elements(group), width(group));
    const codec::UniformScale scale = parameters(group);
    if (!std::isfinite(scale.minimum))
      fail("minima", group, fmt::format("{}", scale.minimum), "a finite number");
    if (!(std::isfinite(scale.scale) && scale.scale >= 0))
      fail("scales", group, fmt::format("{}", scale.scale), "0 or more, and finite");
    if (width(group) == 0 && scale.scale != 0)
      fail("scales", group, fmt::format("{}", scale.scale), "0 for a group of 0 bits");
  }
  if (start != view_.codes.size()) {
    fail("widths", view_.groups, fmt::format("codes of {} bytes together", start),
         std::to_string(view_.codes.size()));
  }
}

std::uint64_t QuantizedArrays::group_elements(std::uint64_t group) const noexcept {
  return std::min(view_.group_size, elements_ - group * view_.group_size);
}

unsigned QuantizedArrays::width(std::uint64_t group) const noexcept {
  return view_.bits != 0 ? view_.bits : view_.widths[group];
}

codec::UniformScale QuantizedArrays::parameters(std::uint64_t group) const noexcept {
  if (view_.parameter_dtype == DType::f64)
    return {number_at<double>(view_.minima, group), number_at<double>(view_.scales, group)};
  return {number_at<float>(view_.minima, group), number_at<float>(view_.scales, group)};
}

void QuantizedArrays::fail(const char* array, std::uint64_t group, std::string value,
                           std::string bound) const {
  fail_field(ErrorCode::bad_value, "payload", array, offset_,
             fmt::format("{} at group {} of {}", value, group, view_.groups), std::move(bound));
}

std::uint64_t QuantizedArrays::piece_elements(std::uint64_t i) const noexcept {
  return std::min(kPieceElements, elements_ - i * kPieceElements);
}

void QuantizedArrays::restore(std::uint64_t i, MutableByteSpan out) const {
  const std::uint64_t width_bytes = dtype_bits(dtype_) / 8;
  std::array<std::uint8_t, kCodes> unpacked;
  std::uint64_t element = i * kPieceElements;
  const std::uint64_t begin = element, end = element + piece_elements(i);
  std::uint64_t group = element / view_.group_size;
  std::uint64_t start = starts_[i];
  for (; element < end; ++group) {
    const unsigned bits = width(group);
    const codec::UniformScale scale = parameters(group);
    const std::uint64_t first = group * view_.group_size;
    const std::uint64_t group_end = std::min(end, first + group_elements(group));
    while (element < group_end) {
      const std::uint64_t count = std::min(kCodes, group_end - element);
      const std::span some = std::span(unpacked).first(count);
      if (bits == 0) {
        std::fill(some.begin(), some.end(), std::uint8_t{0});
      } else {
        // Whole bytes: a piece and a batch begin at a multiple of 8 elements, and so does a group.
        const std::uint64_t at = start + (element - first) / 8 * bits;
        codec::unpack_codes(bits, view_.codes.subspan(at, codec::packed_bytes(count, bits)), some);
      }
      codec::dequantize(dtype_, some, scale,
                        out.subspan((element - begin) * width_bytes, count * width_bytes));
      element += count;
    }
    start += codec::packed_bytes(group_elements(group), bits);
  }
}

void QuantizedArrays::restore_all(MutableByteSpan out, unsigned threads) const {
  const std::uint64_t width_bytes = dtype_bits(dtype_) / 8;
  parallel_for(pieces(), threads, [&](std::size_t i) {
    restore(i, out.subspan(i * kPieceElements * width_bytes, piece_elements(i) * width_bytes));
  });
}

void QuantizedArrays::check_unused_bits() const {
  if (std::any_of(padding_.begin(), padding_.end(), [](std::byte b) { return b != std::byte{0}; }))
    fail("padding", 0, "non-zero bytes", "zero");
  // Groups are multiples of 8 elements, so only the last one can end within a byte.
  if (view_.groups == 0 || view_.codes.empty()) return;
  const std::uint64_t last = view_.groups - 1;
  const unsigned used = static_cast<unsigned>(group_elements(last) % 8 * width(last) % 8);
  if (used != 0 && std::to_integer<unsigned>(view_.codes.back()) >> used != 0) {
    fail("codes", last, std::to_string(std::to_integer<unsigned>(view_.codes.back())),
         fmt::format("{} bits in use", used));
  }
}

}  // namespace thalia::container
