// Single elements as the text they are shown as.
#pragma once

#include <string>

#include "thalia/types.h"

namespace thalia::cli {

/// Shortest decimal that reads back as the same value: as f64 for f64 and c128, as f32 for all
/// narrower floating-point types (each of their values is one). Floating-point numbers always show
/// a point or an exponent. Not finite: nan, inf, -inf. Complex: 1.0-2.0j. Appends.
void append_text(std::string& out, const Element& element);

/// As JSON: numbers as in text; what is not finite as "NaN", "Infinity", "-Infinity" (strings,
/// since JSON has no such numbers), complex as [real, imaginary]. Appends.
void append_json(std::string& out, const Element& element);

}  // namespace thalia::cli
