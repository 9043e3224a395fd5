// Single elements: out of the bytes they are stored in, into the text they are shown as.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <variant>

#include "thalia/bytes.h"
#include "thalia/dtype.h"

namespace thalia::cli {

/// One decoded element, exactly: every floating-point dtype but f64 and c128 fits float. i2 to i64
/// and ternary are signed, u2 to u64 unsigned; binary is -1 or 1, signed.
using Element = std::variant<float, double, std::int64_t, std::uint64_t, bool, std::complex<float>,
                             std::complex<double>>;

/// Element `index` of row-major logical bytes; packed dtypes are one bit stream, least significant
/// bit first. The element must lie inside the span.
Element decode_element(DType dtype, ByteSpan bytes, std::uint64_t index);

/// Shortest decimal that reads back as the same value: as f64 for f64 and c128, as f32 for all
/// narrower floating-point types (each of their values is one). Floating-point numbers always show
/// a point or an exponent. Not finite: nan, inf, -inf. Complex: 1.0-2.0j. Appends.
void append_text(std::string& out, const Element& element);

/// As JSON: numbers as in text; what is not finite as "NaN", "Infinity", "-Infinity" (strings,
/// since JSON has no such numbers), complex as [real, imaginary]. Appends.
void append_json(std::string& out, const Element& element);

}  // namespace thalia::cli
