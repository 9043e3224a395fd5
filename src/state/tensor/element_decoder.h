// Elements of any dtype as numbers to compute with. docs/format/format.md, "Element types".
#pragma once

#include <complex>
#include <cstdint>
#include <span>

#include "thalia/types.h"

namespace thalia::state {

/// Elements [first, first + out.size()) of packed elements; `bytes` has to hold them. Out is double
/// for all but complex dtypes, exact but for integers above 2^53; std::complex<double> for all;
/// std::int64_t for i64 alone, std::uint64_t for u64 alone.
template <typename Out>
void decode_elements(DType dtype, ByteSpan bytes, std::uint64_t first, std::span<Out> out);

extern template void decode_elements(DType, ByteSpan, std::uint64_t, std::span<double>);
extern template void decode_elements(DType, ByteSpan, std::uint64_t,
                                     std::span<std::complex<double>>);
extern template void decode_elements(DType, ByteSpan, std::uint64_t, std::span<std::int64_t>);
extern template void decode_elements(DType, ByteSpan, std::uint64_t, std::span<std::uint64_t>);

}  // namespace thalia::state
