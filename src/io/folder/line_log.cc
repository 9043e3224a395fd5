#include "io/folder/line_log.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>

#include "io/file/posix_file.h"
#include "io/system/posix_error.h"
#include "thalia/error.h"
#include "thalia/types.h"

namespace thalia::io {

void append_lines(const Folder& folder, const std::string& name, std::string_view lines,
                  Durability durability) {
  const std::filesystem::path path = folder.path() / name;
  const UniqueFd fd = folder.open(name, O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK, 0666);
  struct stat status;
  if (::fstat(fd.get(), &status) != 0) throw_errno("fstat", path);
  if (!S_ISREG(status.st_mode))
    throw UsageError(ErrorCode::bad_argument, not_a_file(status.st_mode), {.path = path.string()});
  const auto end = static_cast<std::uint64_t>(status.st_size);
  std::string text;
  if (end > 0) {
    std::array<std::byte, 1> last;
    pread_all(fd.get(), end - 1, last, path);
    if (last[0] != std::byte{'\n'}) text = "\n";
  }
  text += lines;
  // With O_APPEND at the end, wherever that is by now: where no lock keeps another process out, its
  // lines stay whole.
  pwrite_all(fd.get(), end, as_byte_span(text), path);
  if (durability == Durability::none) return;
  sync_file(fd.get(), durability == Durability::full, path);
  // Perhaps it is not new, but a crash came before the folder was synced: once for an empty file.
  if (end == 0 && durability == Durability::full) folder.sync();
}

}  // namespace thalia::io
