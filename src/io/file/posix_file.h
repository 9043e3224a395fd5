// Whole reads and writes at an offset: short transfers are finished, EINTR is retried, every
// failure is an IoError that carries the path and the offset reached. `path` is only for messages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "io/system/unique_fd.h"
#include "thalia/types.h"

namespace thalia::io {

/// What to say of a path of this st_mode where a regular file is expected. Static storage.
const char* not_a_file(unsigned mode) noexcept;

/// Opens for reading (O_CLOEXEC). @throws IoError; UsageError (bad_argument) if the path is no
/// regular file.
UniqueFd open_for_reading(const std::filesystem::path& path);
/// The same for reading and writing; what is in the file stays.
UniqueFd open_for_update(const std::filesystem::path& path);
/// Another descriptor of the same open file. @throws IoError.
UniqueFd duplicate(int fd, const std::filesystem::path& path);
std::uint64_t file_size(int fd, const std::filesystem::path& path);
/// False if the path leads to another file than the one that is open, or to none. @throws
/// IoError.
bool is_at_path(int fd, const std::filesystem::path& path);

/// Makes the file this long; what is new reads as zeros.
void set_file_size(int fd, std::uint64_t size, const std::filesystem::path& path);

/// Reserves disk space for the whole file now, so that a full disk shows before the work.
/// Does nothing if the file system cannot, or signals do not let it. @throws IoError, with
/// ENOSPC or EDQUOT above all.
void reserve_space(int fd, std::uint64_t size, const std::filesystem::path& path);

/// Asks the kernel to start writing an extent back, so that a later fsync has less to wait for.
/// Best effort.
void start_writeback(int fd, std::uint64_t offset, std::uint64_t length) noexcept;

/// fsync, or fdatasync without metadata. @return seconds that it took. @throws IoError.
double sync_file(int fd, bool with_metadata, const std::filesystem::path& path);

/// Asks the kernel to start reading an extent into the page cache. Best effort.
void start_readahead(int fd, std::uint64_t offset, std::uint64_t length) noexcept;

/// @throws IoError; FormatError (truncated) if the file ends first.
void pread_all(int fd, std::uint64_t offset, MutableByteSpan out,
               const std::filesystem::path& path);
void pwrite_all(int fd, std::uint64_t offset, ByteSpan bytes, const std::filesystem::path& path);
/// The pieces one after the other from `offset` on; any number of them, empty ones allowed.
void pwritev_all(int fd, std::uint64_t offset, std::span<const ByteSpan> pieces,
                 const std::filesystem::path& path);

}  // namespace thalia::io
