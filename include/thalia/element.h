// Single elements of any type, as C++ has them. docs/format/format.md, "Element types".
#pragma once

#include <complex>
#include <cstdint>
#include <variant>

#include "thalia/bytes.h"
#include "thalia/dtype.h"

namespace thalia {

/// One element, exactly: every floating-point dtype but f64 and c128 fits float. i2 to i64 and
/// ternary are signed, u2 to u64 unsigned; binary is -1 or 1, signed.
using Element = std::variant<float, double, std::int64_t, std::uint64_t, bool, std::complex<float>,
                             std::complex<double>>;

/// Element `index` of row-major logical bytes; packed dtypes are one bit stream, least significant
/// bit first. The element must lie inside the span. @throws UnsupportedError for a dtype that is
/// none.
Element decode_element(DType dtype, ByteSpan bytes, std::uint64_t index);

}  // namespace thalia
