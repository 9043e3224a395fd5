#include "scratch.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include "paired.h"
#include "thalia/error.h"

namespace thalia::bench {

ScratchFolder::ScratchFolder(const std::filesystem::path& parent) try : measure
  ::ScratchFolder(parent) {}
catch (const IoError& error) {
  // A folder that cannot be written to skips the comparison and not the whole program.
  throw Skipped(error.what());
}

bool is_in_memory(const std::filesystem::path& folder) {
  struct statfs status;
  return ::statfs(folder.c_str(), &status) == 0 &&
         (status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC);
}

void ready_to_write(const std::filesystem::path& folder, std::uint64_t bytes) {
  if (is_in_memory(folder)) return;
  measure::settle(folder);
  measure::touch_free_memory(folder, bytes);
}

}  // namespace thalia::bench
