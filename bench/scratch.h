// Folders and files that benchmarks work on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "thalia/bytes.h"
#include "thalia/dtype.h"
#include "thalia/options.h"
#include "thalia/writer.h"

namespace thalia::bench {

/// A new folder, removed with all in it at the end of the scope.
class ScratchFolder {
 public:
  /// @throws Skipped where `parent` does not exist or cannot be written to.
  explicit ScratchFolder(const std::filesystem::path& parent);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// True for a file system without a disk behind it.
bool is_in_memory(const std::filesystem::path& folder);

/// Declares `payload` as tensors of `tensor_bytes` (the last one shorter), in one region "model".
/// A payload's bytes stay borrowed.
void add_tensors(Writer& writer, ByteSpan payload, DType dtype, std::uint64_t tensor_bytes);
/// Tensors a run of models has: what a large payload is cut into where the number does not matter.
inline constexpr std::uint64_t kTensorBytes = 16 << 20;

/// The name of tensor `i` as add_tensors and the files of open_benchmark use it.
std::string tensor_name(std::uint64_t i);

/// Writes `payload` to a .thalia file, not synced unless the options say so.
SaveResult save(const std::filesystem::path& path, ByteSpan payload, DType dtype,
                std::uint64_t tensor_bytes = kTensorBytes,
                const SaveOptions& options = {.durability = Durability::none});

}  // namespace thalia::bench
