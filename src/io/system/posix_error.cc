#include "io/system/posix_error.h"

#include <sys/resource.h>

#include <string>

#include "thalia/error.h"

namespace thalia::io {

void throw_errno(std::string_view operation, const std::filesystem::path& path,
                 std::optional<std::uint64_t> offset, int errno_value) {
  throw IoError(operation, errno_value, {.path = path.string(), .offset = offset});
}

bool is_out_of_resources(const Error& error) noexcept {
  const auto* const io = dynamic_cast<const IoError*>(&error);
  return io != nullptr && is_out_of_resources(io->errno_value());
}

void throw_mapping(const std::filesystem::path& path, std::uint64_t size, int errno_value) {
  rlimit bound{};
  if (errno_value == ENOMEM && ::getrlimit(RLIMIT_AS, &bound) == 0 &&
      bound.rlim_cur != RLIM_INFINITY) {
    throw IoError("mmap", errno_value,
                  {.path = path.string(),
                   .field = "address space",
                   .value = std::to_string(size) + " bytes for the file",
                   .bound = "less than the " + std::to_string(bound.rlim_cur) +
                            " that the process may have for all that it does (ulimit -v)"});
  }
  throw_errno("mmap", path, {}, errno_value);
}

}  // namespace thalia::io
