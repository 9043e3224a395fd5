// How a checkpoint names the file that it was taken against, and how that file is found. Only here
// does a text from a file become a path that is opened. docs/format/deltas.md, "Resolving".
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/file/file_bytes.h"
#include "thalia/options.h"

namespace thalia::io {

/// The name by which a file at `target` refers to `base`: the path from the target's folder, links
/// followed. Neither file needs to exist. @throws IoError.
std::string base_name(const std::filesystem::path& base, const std::filesystem::path& target);

/// Where the base may be that the file at `from` calls `named`. Likely places come first, none
/// comes twice: that path from the file's folder, then its file name there and in the folders of
/// `search`.
std::vector<std::filesystem::path> base_places(const std::filesystem::path& from,
                                               std::string_view named,
                                               const std::vector<std::filesystem::path>& search,
                                               const BasePolicy& policy);

struct BaseFile {
  std::shared_ptr<const FileBytes> bytes;  ///< null if the place has none
  std::string reason{};                    ///< why it has none; empty if nothing is there
  bool outside = false;                    ///< of the policy's folder: that is the reason
};

/// The regular file at a place that base_places() gave. Whether it is the base is not known yet,
/// and until then nothing may be told about it. @throws IoError if the process or the machine is
/// out of something.
BaseFile open_base(const std::filesystem::path& place, Access access, const BasePolicy& policy);

}  // namespace thalia::io
