// Groups may have widths of their own, so where the codes of a group begin is known only from all
// groups in front of it. The constructor walks them once, checks them, and keeps that place for
// every piece of kPieceElements; then any piece is restored alone, on any thread. Memory is 8 bytes
// for each 65,536 elements. After the constructor every width is at most 8, every parameter finite,
// and all codes lie in the payload, so restore() checks nothing. docs/format.md, "quantized".
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
#include "thalia/shape.h"

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

QuantizedArrays::QuantizedArrays(const format::TensorEntry& entry,
                                 const format::QuantizedTensor& side, ByteSpan logical)
    : offset_(entry.stored_offset), dtype_(entry.dtype), bits_(side.bits), logical_(logical) {
  const Shape shape = format::shape_of(entry);
  elements_ = shape.element_count().value_or(0);
  group_size_ = side.group_size == 0 ? elements_ : std::uint64_t{side.group_size};
  parts_ = *format::quantized_parts(dtype_, shape, bits_, side.group_size, side.code_length);
  starts_.reserve(elements_ / kPieceElements + 1);
  std::uint64_t start = 0;
  for (std::uint64_t group = 0; group < parts_.groups; ++group) {
    const std::uint64_t end = group * group_size_ + group_elements(group);
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
  if (start != parts_.codes.length) {
    fail("widths", parts_.groups, fmt::format("codes of {} bytes together", start),
         std::to_string(parts_.codes.length));
  }
}

std::uint64_t QuantizedArrays::group_elements(std::uint64_t group) const noexcept {
  return std::min(group_size_, elements_ - group * group_size_);
}

unsigned QuantizedArrays::width(std::uint64_t group) const noexcept {
  return bits_ != 0 ? bits_ : std::to_integer<unsigned>(logical_[parts_.widths.offset + group]);
}

codec::UniformScale QuantizedArrays::parameters(std::uint64_t group) const noexcept {
  const ByteSpan minima = logical_.subspan(parts_.minima.offset, parts_.minima.length);
  const ByteSpan scales = logical_.subspan(parts_.scales.offset, parts_.scales.length);
  if (codec::parameter_dtype(dtype_) == DType::f64)
    return {number_at<double>(minima, group), number_at<double>(scales, group)};
  return {number_at<float>(minima, group), number_at<float>(scales, group)};
}

void QuantizedArrays::fail(const char* array, std::uint64_t group, std::string value,
                           std::string bound) const {
  fail_field(ErrorCode::bad_value, "payload", array, offset_,
             fmt::format("{} at group {} of {}", value, group, parts_.groups), std::move(bound));
}

std::uint64_t QuantizedArrays::piece_elements(std::uint64_t i) const noexcept {
  return std::min(kPieceElements, elements_ - i * kPieceElements);
}

void QuantizedArrays::restore(std::uint64_t i, MutableByteSpan out) const {
  const std::uint64_t width_bytes = dtype_bits(dtype_) / 8;
  const ByteSpan codes = logical_.subspan(parts_.codes.offset, parts_.codes.length);
  std::array<std::uint8_t, kCodes> unpacked;
  std::uint64_t element = i * kPieceElements;
  const std::uint64_t begin = element, end = element + piece_elements(i);
  std::uint64_t group = element / group_size_;
  std::uint64_t start = starts_[i];
  for (; element < end; ++group) {
    const unsigned bits = width(group);
    const codec::UniformScale scale = parameters(group);
    const std::uint64_t first = group * group_size_;
    const std::uint64_t group_end = std::min(end, first + group_elements(group));
    while (element < group_end) {
      const std::uint64_t count = std::min(kCodes, group_end - element);
      const std::span some = std::span(unpacked).first(count);
      if (bits == 0) {
        std::fill(some.begin(), some.end(), std::uint8_t{0});
      } else {
        // Whole bytes: a piece and a batch begin at a multiple of 8 elements, and so does a group.
        const std::uint64_t at = start + (element - first) / 8 * bits;
        codec::unpack_codes(bits, codes.subspan(at, codec::packed_bytes(count, bits)), some);
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

QuantizedView QuantizedArrays::view() const noexcept {
  const auto array = [&](const format::Extent& place) {
    return logical_.subspan(place.offset, place.length);
  };
  const ByteSpan widths = array(parts_.widths);
  return {.bits = bits_,
          .group_size = group_size_,
          .groups = parts_.groups,
          .widths = {reinterpret_cast<const std::uint8_t*>(widths.data()), widths.size()},
          .parameter_dtype = codec::parameter_dtype(dtype_),
          .minima = array(parts_.minima),
          .scales = array(parts_.scales),
          .codes = array(parts_.codes)};
}

void QuantizedArrays::check_unused_bits() const {
  const ByteSpan padding =
      logical_.subspan(parts_.widths.length, parts_.minima.offset - parts_.widths.length);
  if (std::any_of(padding.begin(), padding.end(), [](std::byte b) { return b != std::byte{0}; }))
    fail("padding", 0, "non-zero bytes", "zero");
  // Groups are multiples of 8 elements, so only the last one can end within a byte.
  if (parts_.groups == 0 || parts_.codes.length == 0) return;
  const std::uint64_t last = parts_.groups - 1;
  const unsigned used = static_cast<unsigned>(group_elements(last) % 8 * width(last) % 8);
  if (used != 0 && std::to_integer<unsigned>(logical_.back()) >> used != 0) {
    fail("codes", last, std::to_string(std::to_integer<unsigned>(logical_.back())),
         fmt::format("{} bits in use", used));
  }
}

}  // namespace thalia::container
