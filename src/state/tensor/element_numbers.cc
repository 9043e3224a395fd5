// The bridge between stored elements and the doubles that growth, pruning and statistics compute
// with. Every conversion rounds once, to nearest, ties to even, so that results are the same on
// every machine. Integers beyond 2^53 lose their low bits here.

#include "state/tensor/element_numbers.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "base/fail.h"
#include "codec/float/conversion.h"
#include "state/tensor/element_decoder.h"

namespace thalia::state {
namespace {

template <typename T>
T rounded(double number) {
  // The limits as doubles. The upper one of a 64-bit type rounds up to the first number that does
  // not fit, so that >= below must come before the cast, which would be undefined there.
  constexpr double kLowest = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double kHighest = static_cast<double>(std::numeric_limits<T>::max());
  if (std::isnan(number)) return 0;
  const double even = std::nearbyint(number);
  if (even <= kLowest) return std::numeric_limits<T>::min();
  if (even >= kHighest) return std::numeric_limits<T>::max();
  return static_cast<T>(even);
}

template <typename T, typename Use>
bool use_as(DType dtype, const Use& use) {
  if (dtype != DTypeOf<T>::value) return false;
  use(T{});
  return true;
}

// Calls use(T{}) for the integer type T of a dtype. False if it is not one.
template <typename Use>
bool with_integer(DType dtype, const Use& use) {
  return use_as<std::int8_t>(dtype, use) || use_as<std::int16_t>(dtype, use) ||
         use_as<std::int32_t>(dtype, use) || use_as<std::int64_t>(dtype, use) ||
         use_as<std::uint8_t>(dtype, use) || use_as<std::uint16_t>(dtype, use) ||
         use_as<std::uint32_t>(dtype, use) || use_as<std::uint64_t>(dtype, use);
}

void require_numbers(DType dtype) {
  if (holds_numbers(dtype)) return;
  fail_argument(ErrorCode::dtype_mismatch, "dtype", std::string(dtype_name(dtype)),
                "f64, f32, f16, bf16 or an integer of whole bytes");
}

}  // namespace

bool is_number_float(DType dtype) noexcept {
  return codec::is_convertible(dtype);
}

bool holds_numbers(DType dtype) noexcept {
  return is_number_float(dtype) || with_integer(dtype, [](auto) {});
}

std::vector<double> numbers_of(DType dtype, ByteSpan elements) {
  require_numbers(dtype);
  // Floats through the codec's vectorized conversion, integers through the decoder.
  std::vector<double> numbers(elements.size() * 8 / dtype_bits(dtype));
  if (is_number_float(dtype)) {
    codec::convert_elements(dtype, DType::f64, elements,
                            std::as_writable_bytes(std::span(numbers)));
  } else {
    decode_elements(dtype, elements, 0, std::span(numbers));
  }
  return numbers;
}

void write_numbers(DType dtype, std::span<const double> numbers, MutableByteSpan elements) {
  require_numbers(dtype);
  const bool is_integer = with_integer(dtype, [&]<typename T>(T element) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      element = rounded<T>(numbers[i]);
      std::memcpy(elements.data() + i * sizeof(T), &element, sizeof(T));
    }
  });
  if (!is_integer) codec::convert_elements(DType::f64, dtype, std::as_bytes(numbers), elements);
}

}  // namespace thalia::state
