// A regular file's bytes at addresses that stay: mapped, or copied as they are asked for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <utility>

#include "io/file/read_ahead.h"
#include "io/system/unique_fd.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::io {

/// What the descriptor of a FileBytes is.
enum class Backing {
  file,     ///< the file itself, which an append may change
  decoded,  ///< memory, which fill_descriptor() fills with what the file's compressed frames hold
  partial,  ///< memory with extents of another file; touching any other is an UnsupportedError
};

enum class Advice { will_need, dont_need, sequential, random };

/// As long as the file was when it was opened. Any number of threads may use it.
class FileBytes {
 public:
  /// @throws IoError; UsageError (bad_argument) if the path is no regular file.
  static std::shared_ptr<const FileBytes> open(const std::filesystem::path& path, Access access);
  /// The same, after touch_whole().
  static std::shared_ptr<const FileBytes> open_whole(const std::filesystem::path& path,
                                                     Access access, const std::stop_token& cancel);
  virtual ~FileBytes() = default;
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  Access access() const noexcept { return access_; }
  const std::filesystem::path& path() const noexcept { return path_; }
  /// Open for reading: the file that was opened, whatever its path names by now. With another
  /// backing than a file, memory that holds what was filled in.
  int fd() const noexcept { return fd_.get(); }
  virtual Backing backing() const noexcept { return Backing::file; }

  /// The whole file; empty if the file is. In a copied file only extents that were touched hold its
  /// bytes, and these do not change any more.
  ByteSpan bytes() const noexcept { return bytes_; }
  /// Where bytes() begin in the open file, for anybody who reads through fd(). 0 unless this is a
  /// window.
  std::uint64_t begin() const noexcept { return begin_; }
  /// The bytes before a window, which have been touched. Empty for a whole file.
  ByteSpan before() const noexcept { return {bytes_.data() - begin_, begin_}; }
  /// Makes an extent, which lies in the file, readable. Does nothing to a mapped file.
  /// @throws IoError; FormatError (truncated) if the file has become shorter.
  void touch(std::uint64_t offset, std::uint64_t length) const {
    if (access_ == Access::copied) fill(offset, length);
  }
  ByteSpan touched(std::uint64_t offset, std::uint64_t length) const {
    touch(offset, length);
    return bytes_.subspan(offset, length);
  }

  /// All of it, in steps that a stop need not wait long for. @throws as touch(); CancelledError.
  void touch_whole(const std::stop_token& cancel) const;

  /// Reads an extent, which lies in the file, past bytes(). @throws as touch(); also of a mapped
  /// file.
  void read(std::uint64_t offset, MutableByteSpan out) const;
  /// Makes an extent readable through fd(). Does nothing if that is the file itself.
  void fill_descriptor(std::uint64_t offset, std::uint64_t length) const {
    if (backing() != Backing::file) touch(offset, length);
  }

  /// Brings an extent into memory, and its pages into the page tables, before it returns. A kernel
  /// before 5.14 brings it only into the page cache, perhaps later. @throws IoError, with EFAULT
  /// where a touch of a mapped file would raise SIGBUS; FormatError (truncated), for a copied file.
  virtual void populate(std::uint64_t offset, std::uint64_t length) const = 0;
  /// Best effort, for the pages that the extent touches. dont_need takes only pages wholly inside
  /// it, and only in a file that is mapped read-only: in others they may be the only copy.
  virtual void advise(std::uint64_t offset, std::uint64_t length, Advice advice) const noexcept = 0;
  /// Says that an extent is read next, through bytes(): where such extents follow each other, the
  /// system reads ahead of them.
  void read_ahead(std::uint64_t offset, std::uint64_t length) const noexcept {
    const ReadAhead::Extent ahead = ahead_.before(offset, length);
    if (ahead.length() > 0) advise(ahead.begin, ahead.length(), Advice::will_need);
  }
  /// The length of the file on the disk, from which these bytes come. By it ReadLimits measure what
  /// the file may take in memory.
  virtual std::uint64_t disk_bytes() const noexcept { return bytes_.size(); }
  /// Bytes of this object that are in memory, in whole pages or, for a copied file, pieces.
  virtual std::uint64_t resident_bytes() const = 0;

 protected:
  FileBytes(Access access, std::filesystem::path path, UniqueFd fd)
      : access_(access), path_(std::move(path)), fd_(std::move(fd)) {}
  virtual void fill(std::uint64_t offset, std::uint64_t length) const = 0;
  ByteSpan bytes_;
  std::uint64_t begin_ = 0;

 private:
  Access access_;
  std::filesystem::path path_;
  UniqueFd fd_;
  mutable ReadAhead ahead_;
};

/// The size of an open file, which fits the address space. @throws IoError.
std::size_t addressable_size(int fd, const std::filesystem::path& path);

}  // namespace thalia::io
