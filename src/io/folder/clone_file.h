// A copy that shares its blocks with the original until one of the two changes.
#pragma once

namespace thalia::io {

/// Makes an empty file the same as another one of its file system. @return false if the file
/// system cannot, or the two lie on different ones: nothing was changed then.
bool clone_file(int from, int to) noexcept;

}  // namespace thalia::io
