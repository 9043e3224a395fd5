#include "io/posix_error.h"

#include "thalia/error.h"

namespace thalia::io {

void throw_errno(std::string_view operation, const std::filesystem::path& path,
                 std::optional<std::uint64_t> offset, int errno_value) {
  throw IoError(operation, errno_value, {.path = path.string(), .offset = offset});
}

}  // namespace thalia::io
