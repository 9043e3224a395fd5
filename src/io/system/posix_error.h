// errno becomes an IoError in one place.
#pragma once

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace thalia {
class Error;
}

namespace thalia::io {

/// @throws IoError with the operation's name, `path` and, where given, the offset.
[[noreturn]] void throw_errno(std::string_view operation, const std::filesystem::path& path,
                              std::optional<std::uint64_t> offset = std::nullopt,
                              int errno_value = errno);

/// As throw_errno() of a mapping of `size` bytes. If the process is not given so much address
/// space, the error says how much it may have. @throws IoError.
[[noreturn]] void throw_mapping(const std::filesystem::path& path, std::uint64_t size,
                                int errno_value = errno);

/// True if errno says that the disk or the file refused a transfer or a sync. Any other value,
/// above all of a cancelled or interrupted one, says that it was not done: the ordinary way then
/// does it, or says why not.
constexpr bool is_final(int errno_value) noexcept {
  switch (errno_value) {
    case EIO:
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EROFS:
    case EBADF:
    case ENXIO:
    case ENODEV:
    case ESTALE:
      return true;
    default:
      return false;
  }
}

/// True if the process has no descriptor or memory left: another file would not fare better.
constexpr bool is_out_of_resources(int errno_value) noexcept {
  return errno_value == EMFILE || errno_value == ENFILE || errno_value == ENOMEM;
}
bool is_out_of_resources(const Error& error) noexcept;

/// Calls `call` again for as long as a signal interrupts it (-1 with EINTR).
template <typename Call>
auto retry_interrupted(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

}  // namespace thalia::io
