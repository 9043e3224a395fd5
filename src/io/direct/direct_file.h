// Descriptors for transfers past the page cache, and what such transfers ask for.
#pragma once

#include <cstddef>

#include "io/system/unique_fd.h"

namespace thalia::io {

enum class DirectAccess { read, write };

/// A second, O_DIRECT descriptor of an open file (through /proc/self/fd); empty if the file
/// system has none.
UniqueFd open_direct(int fd, DirectAccess access);

/// Addresses of direct transfers have to be multiples of this, as the kernel says for this file
/// (statx, Linux 6.1); kDirectAlignment if it does not say.
std::size_t direct_memory_alignment(int direct_fd) noexcept;

/// True for tmpfs and ramfs, where "direct" only adds a copy.
bool is_in_memory(int fd) noexcept;

}  // namespace thalia::io
