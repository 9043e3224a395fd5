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

SaveResult save(const std::filesystem::path& path, ByteSpan payload, DType dtype,
                std::uint64_t tensor_bytes, const SaveOptions& options) {
  Writer writer(path, options);
  measure::add_tensors(writer, payload, dtype, tensor_bytes);
  return writer.commit();
}

}  // namespace thalia::bench
