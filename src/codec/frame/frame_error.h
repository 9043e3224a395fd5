// One form for the errors of compressed frames, whatever the codec.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fail.h"
#include "format/little_endian.h"

namespace thalia::codec {

/// What codecs are called in errors.
inline constexpr std::string_view kZstdName = "zstd";
inline constexpr std::string_view kLz4Name = "lz4";
inline constexpr std::string_view kPlaneEntropyName = "plane_entropy";
inline constexpr std::string_view kPackedExponentsName = "packed_exponents";

inline std::string in_bytes(std::uint64_t count) {
  return fmt::format("{} bytes", count);
}

/// @throws CompressionError: the frame of codec `name` breaks a rule.
[[noreturn]] inline void fail_frame(std::string_view name, std::string_view what,
                                    std::string value = {}, std::string bound = {}) {
  throw CompressionError(std::string(name), fmt::format("{} frame: {}", name, what),
                         {.value = std::move(value), .bound = std::move(bound)});
}
[[noreturn]] inline void fail_frame(std::string_view name, std::string_view what,
                                    std::uint64_t value, std::string bound) {
  fail_frame(name, what, std::to_string(value), std::move(bound));
}

}  // namespace thalia::codec
