// How a checkpoint names the file that it was taken against, and how that is found: the only place
// where what a file says becomes a path that is opened. docs/deltas.md, "Resolving".
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/file_bytes.h"
#include "thalia/base_policy.h"

namespace thalia::io {

/// What a file at `target` says to name `base`: the path from its folder, links followed. Neither
/// need be there. @throws IoError.
std::string base_name(const std::filesystem::path& base, const std::filesystem::path& target);

/// Where the base that the file at `from` calls `named` may be, likely places first, none twice:
/// at its path from the file's folder, and under its file name there and in the folders of
/// `search`.
std::vector<std::filesystem::path> base_places(const std::filesystem::path& from,
                                               std::string_view named,
                                               const std::vector<std::filesystem::path>& search,
                                               const BasePolicy& policy);

struct BaseFile {
  std::shared_ptr<const FileBytes> bytes;  ///< null where the place has none
  std::string reason{};                    ///< why it has none; empty where nothing is there
};

/// The regular file at a place that base_places() gave. What it is has still to be found out, and
/// nothing may be told of it before. @throws IoError where the process or the machine is out of
/// something.
BaseFile open_base(const std::filesystem::path& place, Access access, const BasePolicy& policy);

}  // namespace thalia::io
