// A sink's refusal of a tensor that its format has no place for.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "thalia/error.h"

namespace thalia::formats {

/// @throws UnsupportedError (unsupported_feature) that names the tensor and says why.
[[noreturn]] inline void refuse_tensor(std::string_view tensor, std::string message,
                                       std::string field = {}, std::string value = {},
                                       std::string bound = {}) {
  throw UnsupportedError(ErrorCode::unsupported_feature, std::move(message),
                         {.field = std::move(field),
                          .tensor = printable(tensor),
                          .value = std::move(value),
                          .bound = std::move(bound)});
}

}  // namespace thalia::formats
