// Elements as numbers, and numbers as elements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "thalia/types.h"

namespace thalia::state {

/// f64, f32, f16 and bf16.
bool is_number_float(DType dtype) noexcept;
/// These, and the integers of whole bytes.
bool holds_numbers(DType dtype) noexcept;

/// Elements of whole bytes, dense, one after the other; integers beyond 2^53 are rounded. @throws
/// UsageError (dtype_mismatch) unless the type holds numbers.
std::vector<double> numbers_of(DType dtype, ByteSpan elements);
/// Calls visit(number) for each of them in order, and never holds more than a few at once. @throws
/// as numbers_of().
template <typename Visit>
void for_each_number(DType dtype, ByteSpan elements, const Visit& visit) {
  constexpr std::size_t kPiece = 1 << 16;  // a multiple of every width
  for (std::size_t at = 0; at < elements.size(); at += kPiece) {
    const std::size_t size = std::min(kPiece, elements.size() - at);
    for (const double number : numbers_of(dtype, elements.subspan(at, size))) visit(number);
  }
}
/// Writes the numbers as elements, rounded once, to nearest, ties to even. Integers end at the
/// limits of their type, and NaN becomes 0. `elements` has room for as many. @throws as
/// numbers_of().
void write_numbers(DType dtype, std::span<const double> numbers, MutableByteSpan elements);

}  // namespace thalia::state
