// One form for the errors of compressed frames, whatever the codec.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fail.h"
#include "format/little_endian.h"

namespace thalia::codec {

/// @throws CompressionError: the frame of codec `name` breaks a rule.
[[noreturn]] inline void fail_frame(std::string_view name, std::string_view what,
                                    std::string value = {}, std::string bound = {}) {
  throw CompressionError(std::string(name), fmt::format("{} frame: {}", name, what),
                         {.value = std::move(value), .bound = std::move(bound)});
}

}  // namespace thalia::codec
