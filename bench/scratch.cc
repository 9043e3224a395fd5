#include "scratch.h"

#include <linux/magic.h>
#include <stdlib.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "paired.h"

namespace thalia::bench {

ScratchFolder::ScratchFolder(const std::filesystem::path& parent) {
  std::string pattern = (parent / "thalia-bench-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr)
    throw Skipped(parent.string() + ": no folder can be made there: " + std::strerror(errno));
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

bool is_in_memory(const std::filesystem::path& folder) {
  struct statfs status;
  return ::statfs(folder.c_str(), &status) == 0 &&
         (status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC);
}

std::string tensor_name(std::uint64_t i) {
  return "layers." + std::to_string(i / 8) + ".w" + std::to_string(i % 8);
}

void add_tensors(Writer& writer, ByteSpan payload, DType dtype, std::uint64_t tensor_bytes) {
  const RegionId region = writer.add_region({.name = "model"});
  const std::uint64_t element_bytes = dtype_bits(dtype) / 8;
  for (std::uint64_t at = 0, i = 0; at < payload.size(); at += tensor_bytes, ++i) {
    const ByteSpan part =
        payload.subspan(at, std::min<std::uint64_t>(tensor_bytes, payload.size() - at));
    writer.add_tensor(
        region, {.name = tensor_name(i), .dtype = dtype, .shape = {part.size() / element_bytes}},
        part);
  }
}

SaveResult save(const std::filesystem::path& path, ByteSpan payload, DType dtype,
                std::uint64_t tensor_bytes, const SaveOptions& options) {
  Writer writer(path, options);
  add_tensors(writer, payload, dtype, tensor_bytes);
  return writer.commit();
}

}  // namespace thalia::bench
