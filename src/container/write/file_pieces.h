// A file as a list of pieces in memory with zeros between them. Several threads hash and write its
// extents in one pass, and nothing is copied to make it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "thalia/types.h"

namespace thalia::container {

class FilePieces {
 public:
  /// @param fd negative: of an image in memory alone, of which nothing is written.
  /// @param begin where the image begins in the open file; its own offsets count from there.
  FilePieces(int fd, std::filesystem::path path, std::uint64_t begin = 0)
      : fd_(fd), path_(std::move(path)), begin_(begin) {}

  /// Pieces do not overlap. `bytes` is borrowed until the image is gone.
  void add(std::uint64_t offset, ByteSpan bytes);
  /// Several, one after the other.
  void add(std::uint64_t offset, std::span<const ByteSpan> pieces);
  /// A piece that is in the file already.
  void add_written(std::uint64_t offset, std::uint64_t length);
  /// To be called after the last piece was added and before the calls below. Pieces after all
  /// others may still follow.
  void sort();

  /// Calls `visit` with the bytes of [begin, end) in order, zeros where no piece is; pieces in the
  /// file are read back.
  void for_each(std::uint64_t begin, std::uint64_t end,
                const std::function<void(ByteSpan)>& visit) const;

  /// The same into `out`.
  void copy(std::uint64_t begin, std::uint64_t end, MutableByteSpan out) const;

  /// The bytes of [begin, end) if they lie in one piece in memory; else an empty span.
  ByteSpan contiguous(std::uint64_t begin, std::uint64_t end) const;
  /// True if a part of [begin, end) is in the file already.
  bool has_written(std::uint64_t begin, std::uint64_t end) const;
  /// Writes what is not in the file yet of [begin, end), in few calls. @throws IoError.
  void write(std::uint64_t begin, std::uint64_t end) const;
  /// Writes these bytes through the page cache. @throws IoError.
  void write_at(std::uint64_t offset, ByteSpan bytes) const;
  /// Asks the kernel to start writing an extent back.
  void start_writeback(std::uint64_t offset, std::uint64_t length) const noexcept;
  /// Sets the file's length to the image's. @throws IoError.
  void set_length(std::uint64_t length) const;

  bool is_in_memory() const noexcept { return fd_ < 0; }
  int fd() const noexcept { return fd_; }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  struct Piece {
    std::uint64_t offset;
    std::uint64_t length;
    const std::byte* bytes;  ///< null: in the file
  };
  // First piece that ends after `offset`.
  std::vector<Piece>::const_iterator first_piece(std::uint64_t offset) const;
  // Calls visit(offset, bytes), with a null pointer for a piece in the file.
  template <typename Visit>
  void walk(std::uint64_t begin, std::uint64_t end, Visit visit) const;

  int fd_;
  std::filesystem::path path_;
  std::uint64_t begin_;
  std::vector<Piece> pieces_;
};

}  // namespace thalia::container
