// Floating point numbers of tests: what they are worth, where rounding is decided, and what the
// nearest number of another type is, found by search among all of them.
#pragma once

#include <cstdint>
#include <vector>

#include "thalia/types.h"

namespace thalia::test {

/// The number that these bits are. Not of a NaN.
long double value_of(DType dtype, std::uint64_t bits);

/// Every finite f16 or bf16 that is not negative, ascending; the index is its bits.
const std::vector<long double>& all_finite(DType dtype);

/// The bits of the f16 or bf16 nearest to a number that is not NaN, ties to even.
std::uint64_t nearest(DType dtype, long double number);

/// Samples of f32 or f64: both signs and every exponent, each with mantissas that lie on, beside
/// and between the ties of every shorter mantissa. No NaN.
std::vector<std::uint64_t> rounding_samples(DType dtype);

/// Elements of these bits, in memory order.
std::vector<std::byte> elements_of(DType dtype, const std::vector<std::uint64_t>& bits);
/// The bits of the element at i.
std::uint64_t element_at(DType dtype, ByteSpan elements, std::size_t i);

}  // namespace thalia::test
