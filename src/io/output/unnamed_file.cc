// Resolved deltas go here. A folder that cannot be written to is no reason to fail, so memory
// takes its place; a full disk or a lack of descriptors is one, as memory would only hide it.
#include "io/output/unnamed_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "io/file/memory_file.h"
#include "io/system/posix_error.h"

namespace thalia::io {

UniqueFd create_unnamed_file(const std::filesystem::path& folder) {
  std::error_code none;
  const std::filesystem::path at =
      folder.empty() ? std::filesystem::temp_directory_path(none) : folder;
  if (none) return create_memory_file();
  // With O_EXCL it cannot even be linked.
  UniqueFd fd(retry_interrupted([&] {
    return ::open(at.c_str(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  }));
  if (fd) return fd;
  if (is_out_of_resources(errno) || errno == ENOSPC || errno == EDQUOT)
    throw_errno("open with O_TMPFILE", at);
  return create_memory_file();
}

}  // namespace thalia::io
