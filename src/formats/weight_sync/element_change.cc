#include "formats/weight_sync/element_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "base/fail.h"
#include "thalia/tensor.h"

namespace thalia::formats::weight_sync {
namespace {

std::uint64_t element_bytes(DType dtype) {
  const std::uint64_t bits = dtype_bits(dtype);
  if (bits % 8 != 0) {
    throw UnsupportedDtypeError(std::string(dtype_name(dtype)), "elements that are no whole bytes");
  }
  return bits / 8;
}

template <typename T>
void append_number(std::vector<std::byte>& out, std::uint64_t value) {
  const auto number = static_cast<T>(value);
  const auto* const bytes = reinterpret_cast<const std::byte*>(&number);
  out.insert(out.end(), bytes, bytes + sizeof number);
}

template <typename T>
void put_positions(ElementList& list, DType dtype, const std::vector<std::uint64_t>& numbers) {
  list.position_type = dtype;
  list.positions.reserve(numbers.size() * sizeof(T));
  for (const std::uint64_t number : numbers) append_number<T>(list.positions, number);
}

template <typename T>
std::uint64_t number_at(ByteSpan bytes, std::uint64_t i) noexcept {
  T number;
  std::memcpy(&number, bytes.data() + i * sizeof(T), sizeof(T));
  // A negative one becomes larger than any position.
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(number));
}

[[noreturn]] void refuse_list(std::string_view field, std::string value, std::string bound) {
  throw FormatError(ErrorCode::bad_value, "",
                    {.section = "delta",
                     .field = std::string(field),
                     .value = std::move(value),
                     .bound = std::move(bound)});
}

template <typename T, bool kGaps>
void scatter(ByteSpan positions, ByteSpan values, std::uint64_t width, MutableByteSpan state) {
  const std::uint64_t count = values.size() / width;
  const std::uint64_t elements = state.size() / width;
  std::uint64_t least = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t number = number_at<T>(positions, i);
    const std::uint64_t position = kGaps ? least + number : number;
    if (position < least || position >= elements) {
      refuse_list("position",
                  kGaps ? std::to_string(position) : std::to_string(static_cast<T>(number)),
                  fmt::format("at least {}, below {}", least, elements));
    }
    std::memcpy(state.data() + position * width, values.data() + i * width, width);
    least = position + 1;
  }
}

void check_list(PositionEncoding encoding, const Tensor& positions, const Tensor& values,
                DType dtype) {
  const DType of_positions = positions.dtype();
  const bool is_fit = encoding == PositionEncoding::raw
                          ? of_positions == DType::i32
                          : of_positions == DType::u16 || of_positions == DType::u32;
  if (!is_fit) {
    refuse_list("dtype of positions", std::string(dtype_name(of_positions)),
                encoding == PositionEncoding::raw ? "i32" : "u16 or u32");
  }
  if (values.dtype() != dtype)
    refuse_list("dtype of values", std::string(dtype_name(values.dtype())),
                std::string(dtype_name(dtype)));
  for (const Tensor* one : {&positions, &values})
    if (one->shape().rank() != 1) refuse_list("shape", one->shape().to_string(), "one dimension");
  if (positions.shape() != values.shape())
    refuse_list("values", values.shape().to_string(), positions.shape().to_string());
}

}  // namespace

ElementList list_elements(PositionEncoding encoding, DType dtype, ByteSpan before, ByteSpan after) {
  ElementList list;
  if (after.empty() || std::memcmp(before.data(), after.data(), after.size()) == 0) return list;
  const std::uint64_t width = element_bytes(dtype);
  constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
  const std::uint64_t elements = after.size() / width;
  if (elements > kMost) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "positions of 32 bits do not reach all elements of the tensor",
                           {.field = "shape",
                            .value = fmt::format("{} elements", elements),
                            .bound = std::to_string(kMost)});
  }
  std::vector<std::uint64_t> numbers;
  std::uint64_t least = 0, largest = 0;
  for (std::uint64_t i = 0; i < elements; ++i) {
    const ByteSpan value = after.subspan(i * width, width);
    if (std::memcmp(before.data() + i * width, value.data(), width) == 0) continue;
    numbers.push_back(encoding == PositionEncoding::raw ? i : i - least);
    largest = std::max(largest, numbers.back());
    list.values.insert(list.values.end(), value.begin(), value.end());
    least = i + 1;
  }
  list.count = numbers.size();
  if (encoding == PositionEncoding::raw) {
    put_positions<std::int32_t>(list, DType::i32, numbers);
  } else if (largest <= std::numeric_limits<std::uint16_t>::max()) {
    put_positions<std::uint16_t>(list, DType::u16, numbers);
  } else {
    put_positions<std::uint32_t>(list, DType::u32, numbers);
  }
  return list;
}

void apply_elements(PositionEncoding encoding, const Tensor& positions, const Tensor& values,
                    DType dtype, MutableByteSpan state) {
  const std::uint64_t width = element_bytes(dtype);
  check_list(encoding, positions, values, dtype);
  const ByteSpan numbers = positions.bytes();
  if (encoding == PositionEncoding::raw) {
    scatter<std::int32_t, false>(numbers, values.bytes(), width, state);
  } else if (positions.dtype() == DType::u16) {
    scatter<std::uint16_t, true>(numbers, values.bytes(), width, state);
  } else {
    scatter<std::uint32_t, true>(numbers, values.bytes(), width, state);
  }
}

}  // namespace thalia::formats::weight_sync
