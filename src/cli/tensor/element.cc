// fmt writes the shortest decimal that reads back as the same number, in every locale alike.
#include "cli/tensor/element.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <string_view>
#include <type_traits>

namespace thalia::cli {
namespace {

template <typename T>
void append_float(std::string& out, T value) {
  if (std::isnan(value)) {
    out += "nan";
    return;
  }
  const std::size_t start = out.size();
  fmt::format_to(std::back_inserter(out), "{}", value);
  // "1" would read as an integer.
  if (std::isfinite(value) && out.find_first_of(".e", start) == std::string::npos) out += ".0";
}

template <typename T>
void append_json_float(std::string& out, T value) {
  if (std::isnan(value)) {
    out += "\"NaN\"";
  } else if (std::isinf(value)) {
    out += value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  } else {
    append_float(out, value);
  }
}

}  // namespace

void append_text(std::string& out, const Element& element) {
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool>) {
          out += value ? "true" : "false";
        } else if constexpr (std::is_integral_v<T>) {
          fmt::format_to(std::back_inserter(out), "{}", value);
        } else if constexpr (std::is_floating_point_v<T>) {
          append_float(out, value);
        } else {
          append_float(out, value.real());
          if (!std::signbit(value.imag())) out += '+';
          append_float(out, value.imag());
          out += 'j';
        }
      },
      element);
}

void append_json(std::string& out, const Element& element) {
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_integral_v<T>) {
          append_text(out, element);
        } else if constexpr (std::is_floating_point_v<T>) {
          append_json_float(out, value);
        } else {
          out += '[';
          append_json_float(out, value.real());
          out += ',';
          append_json_float(out, value.imag());
          out += ']';
        }
      },
      element);
}

}  // namespace thalia::cli
