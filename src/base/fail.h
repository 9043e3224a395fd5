// Short ways to throw the errors of thalia/error.h, so that a check is one line.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "thalia/error.h"

namespace thalia {

/// A field of a structure on disk has a value that it must not have; `bound` says what was
/// expected.
[[noreturn]] inline void fail_field(ErrorCode code, std::string_view section,
                                    std::string_view field, std::uint64_t offset, std::string value,
                                    std::string bound, std::string message = {}) {
  throw FormatError(code, std::move(message),
                    {.section = std::string(section),
                     .field = std::string(field),
                     .offset = offset,
                     .value = std::move(value),
                     .bound = std::move(bound)});
}

/// A file needs more than a limit of ReadLimits or of an option allows.
[[noreturn]] inline void fail_limit(std::string_view section, std::string_view limit,
                                    std::uint64_t value, std::uint64_t bound) {
  throw FormatError(ErrorCode::limit_exceeded,
                    fmt::format("limit {} exceeded, raise it to read this file", limit),
                    {.section = std::string(section),
                     .value = std::to_string(value),
                     .bound = std::to_string(bound)});
}

/// The caller has made a mistake with one argument or option.
[[noreturn]] inline void fail_argument(ErrorCode code, std::string_view field, std::string value,
                                       std::string bound, std::string message = {}) {
  throw UsageError(
      code, std::move(message),
      {.field = std::string(field), .value = std::move(value), .bound = std::move(bound)});
}

/// Throws unless the option's value lies between `least` and `greatest`, both included.
template <std::integral T>
void check_option(std::string_view name, T value, std::type_identity_t<T> least,
                  std::type_identity_t<T> greatest) {
  if (value >= least && value <= greatest) return;
  fail_argument(ErrorCode::bad_argument, name, std::to_string(value),
                fmt::format("{} to {}", least, greatest));
}

/// Errors of `call` without a path get this file's.
template <typename Call>
decltype(auto) with_path(std::string_view path, const Call& call) {
  try {
    return call();
  } catch (Error& error) {
    error.add_path(path);
    throw;
  }
}

/// Errors of `call` that name no tensor name this one.
template <typename Call>
decltype(auto) with_tensor(std::string_view tensor, const Call& call) {
  try {
    return call();
  } catch (Error& error) {
    error.add_tensor(tensor);
    throw;
  }
}

/// Throws CancelledError once a stop was requested. Long work calls it where it may end.
inline void stop_if_cancelled(const std::stop_token& cancel) {
  if (cancel.stop_requested()) throw CancelledError(ErrorCode::cancelled, "cancelled on request");
}

}  // namespace thalia
