// A file as a list of byte runs in memory, with zeros between them: how a save hands out its blocks
// to be hashed and written in one pass, by several threads, without copying.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "thalia/bytes.h"
#include "thalia/format/header.h"
#include "thalia/options.h"

namespace thalia::container {

class FileImage {
 public:
  FileImage(int fd, std::filesystem::path path) : fd_(fd), path_(std::move(path)) {}

  /// Runs do not overlap. `bytes` is borrowed until the image is gone.
  void add(std::uint64_t offset, ByteSpan bytes);
  /// A run that is in the file already.
  void add_written(std::uint64_t offset, std::uint64_t length);
  /// Before the calls below, and after the last run was added.
  void sort();

  /// Calls `visit` with the bytes of [begin, end) in order, zeros where no run is; runs in the file
  /// are read back.
  void for_each(std::uint64_t begin, std::uint64_t end,
                const std::function<void(ByteSpan)>& visit) const;

  struct WriteOptions {
    std::uint64_t end = 0;          ///< bytes of the image
    std::uint64_t block_bytes = 0;  ///< what a thread takes at a time
    unsigned threads = 0;
    format::LeafAlgorithm leaves{};  ///< read where want_leaves
    bool want_leaves = false;
    Progress progress;
  };
  /// Writes every run that is not in the file yet, except the first 256 bytes of the file, which
  /// stay zero.
  /// @return the leaf digests of the blocks, or nothing where none are wanted. @throws IoError.
  std::vector<std::byte> write_blocks(const WriteOptions& options) const;

 private:
  struct Run {
    std::uint64_t offset;
    std::uint64_t length;
    const std::byte* bytes;  ///< null: in the file
  };
  template <typename Visit>  // visit(ByteSpan bytes or {nullptr, length} for a run in the file,
                             // offset)
  void walk(std::uint64_t begin, std::uint64_t end, Visit visit) const;

  int fd_;
  std::filesystem::path path_;
  std::vector<Run> runs_;
};

}  // namespace thalia::container
