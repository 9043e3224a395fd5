// Gathers small pieces into few writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include "io/posix_file.h"
#include "thalia/bytes.h"

namespace thalia::io {

/// Writes one behind the other from byte 0 on. What was not flushed is lost. Externally
/// synchronised.
class GatheredWriter {
 public:
  /// @param fd borrowed. @param path for messages.
  GatheredWriter(int fd, std::filesystem::path path) : fd_(fd), path_(std::move(path)) {}

  /// @throws IoError.
  void write(ByteSpan piece) {
    if (buffer_.size() + piece.size() > kGather) flush();
    if (piece.size() >= kGather) {
      pwrite_all(fd_, offset_, piece, path_);
      offset_ += piece.size();
      return;
    }
    buffer_.insert(buffer_.end(), piece.begin(), piece.end());
  }
  void flush() {
    pwrite_all(fd_, offset_, buffer_, path_);
    offset_ += buffer_.size();
    buffer_.clear();
  }

 private:
  static constexpr std::size_t kGather = 1 << 20;
  int fd_;
  std::filesystem::path path_;
  std::uint64_t offset_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace thalia::io
