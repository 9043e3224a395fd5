#include "state/quantize/importance.h"

#include <cmath>
#include <span>
#include <string>

#include "base/fail.h"
#include "codec/float/conversion.h"

namespace thalia::state {

std::vector<double> importance_from(const Tensor& sensitivity, std::uint64_t elements) {
  if (!sensitivity.is_dense() || !codec::is_convertible(sensitivity.dtype())) {
    fail_argument(ErrorCode::dtype_mismatch, "sensitivity",
                  std::string(dtype_name(sensitivity.dtype())),
                  "a dense tensor of f32, f64, f16 or bf16");
  }
  if (sensitivity.element_count() != elements) {
    fail_argument(ErrorCode::size_mismatch, "sensitivity",
                  fmt::format("{} elements", sensitivity.element_count()),
                  std::to_string(elements));
  }
  std::vector<double> importance(elements);
  codec::convert_elements(sensitivity.dtype(), DType::f64, sensitivity.bytes(),
                          std::as_writable_bytes(std::span(importance)));
  for (double& weight : importance) {
    // What counts is sensitivity² × error²: the sign is lost here.
    weight *= weight;
    if (!std::isfinite(weight)) {
      fail_argument(ErrorCode::bad_argument, "sensitivity", "NaN, infinity or more than 1e154",
                    "finite squares");
    }
  }
  return importance;
}

}  // namespace thalia::state
