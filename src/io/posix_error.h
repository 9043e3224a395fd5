// errno becomes an IoError in one place.
#pragma once

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace thalia::io {

/// @throws IoError with the operation's name, `path` and, where given, the offset.
[[noreturn]] void throw_errno(std::string_view operation, const std::filesystem::path& path,
                              std::optional<std::uint64_t> offset = std::nullopt,
                              int errno_value = errno);

/// Calls `call` again for as long as a signal interrupts it (-1 with EINTR).
template <typename Call>
auto retry_interrupted(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

}  // namespace thalia::io
