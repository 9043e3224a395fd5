// A file that is looked at more than once, and opened once: to see what it is, then to read it.
#pragma once

#include <filesystem>
#include <memory>
#include <stop_token>
#include <utility>

#include "io/file/file_bytes.h"
#include "thalia/options.h"

namespace thalia::io {

/// What lies at a path. Anybody who asks for its bytes first opens it, and all others get the same
/// bytes, even where the path names another file by then. A copy that is made later shares them.
/// Externally synchronised.
class InputFile {
 public:
  /// Opens nothing: a folder is an input too, and has no bytes.
  InputFile(std::filesystem::path path) : path_(std::move(path)) {}  // a path is one, said shorter
  /// A file that is open.
  explicit InputFile(std::shared_ptr<const FileBytes> bytes)
      : path_(bytes->path()), bytes_(std::move(bytes)) {}

  const std::filesystem::path& path() const noexcept { return path_; }
  /// @param access of the first call counts. @throws as FileBytes::open().
  const std::shared_ptr<const FileBytes>& bytes(Access access) const {
    if (!bytes_) bytes_ = FileBytes::open(path_, access);
    return bytes_;
  }
  /// The same, after touch_whole().
  const std::shared_ptr<const FileBytes>& whole(Access access,
                                                const std::stop_token& cancel) const {
    bytes(access)->touch_whole(cancel);
    return bytes_;
  }

 private:
  std::filesystem::path path_;
  mutable std::shared_ptr<const FileBytes> bytes_;
};

}  // namespace thalia::io
