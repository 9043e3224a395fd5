// Elements as numbers to calculate with.
#pragma once

#include <cmath>
#include <complex>
#include <type_traits>
#include <variant>

#include "thalia/types.h"

namespace thalia::cli {

/// As f64, of which integers above 2^53 are rounded.
inline std::complex<double> complex_number(const Element& element) {
  return std::visit(
      [](const auto& value) {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_arithmetic_v<Value>) {
          return std::complex<double>(static_cast<double>(value));
        } else {
          return std::complex<double>(value.real(), value.imag());
        }
      },
      element);
}

/// The same; of a complex element its absolute value.
inline double magnitude_or_number(const Element& element) {
  return std::visit(
      [](const auto& value) {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_arithmetic_v<Value>) {
          return static_cast<double>(value);
        } else {
          return std::hypot(static_cast<double>(value.real()), static_cast<double>(value.imag()));
        }
      },
      element);
}

}  // namespace thalia::cli
