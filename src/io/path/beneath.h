// What lies below a folder that a caller named, where a stranger may have put links.
#pragma once

#include <filesystem>
#include <string_view>

#include "io/system/unique_fd.h"
#include "thalia/options.h"

namespace thalia::io {

/// Whether a name is one of a folder's own: 1 to 255 bytes without '/' and NUL, not "." and "..".
bool is_inner_name(std::string_view name) noexcept;

/// Opens one name of a folder as openat(2) does, and never through a link. `path` is for messages.
/// @return no descriptor if it fails, and errno. @throws UsageError (bad_argument) for a link.
UniqueFd open_name(int folder_fd, const char* name, int flags, unsigned mode,
                   const std::filesystem::path& path);

/// Opens a path as open(2) does. Where `within` is not empty, the path has to begin with it, and
/// what follows it is opened one name after the other, each in the folder that the one before
/// has opened: whatever changes meanwhile, what is opened lies in that folder. Links that lead to
/// the folder itself are followed. @return no descriptor if it fails, and errno. @throws
/// UsageError (bad_argument) for a link below the folder, and for a path that leads out of it.
UniqueFd open_beneath(const std::filesystem::path& within, const std::filesystem::path& path,
                      int flags, unsigned mode = 0);

/// make_folders() of a path below a folder that is there, through no link. @throws IoError;
/// UsageError, as open_beneath().
void make_folders_beneath(const std::filesystem::path& within, const std::filesystem::path& folder,
                          Durability durability);

/// @throws UsageError (bad_argument): of a link if none is followed.
[[noreturn]] void refuse_link(const std::filesystem::path& path);

}  // namespace thalia::io
