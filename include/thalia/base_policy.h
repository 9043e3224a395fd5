// Which files a checkpoint may name as the one that it was taken against.
//
//   thalia::MckpChain::open(upload, {.bases = thalia::within("/srv/checkpoints")});
//
// docs/security.md, "Files that a file names".
#pragma once

#include <filesystem>
#include <utility>

namespace thalia {

/// What a file names is opened where it is a regular file, and used where its identity is the one
/// that the file asks for. As it is made, it has to be named by a path from the file's folder,
/// which may lead out of it; of an absolute path only the file name counts.
struct BasePolicy {
  bool absolute = false;  ///< absolute paths are opened as they stand
  /// Not empty: only what lies in this folder or below it, links followed, is opened. This counts
  /// for folders that are searched too.
  std::filesystem::path folder{};
};

/// For those who read files of strangers.
inline BasePolicy within(std::filesystem::path folder) {
  return {.absolute = true, .folder = std::move(folder)};
}

}  // namespace thalia
