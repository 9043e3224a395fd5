// The end of a file as a file of its own: offsets count from its beginning.
#pragma once

#include <cstdint>
#include <memory>

#include "io/file/file_bytes.h"

namespace thalia::io {

/// Keeps the whole file open. As thread-safe as that.
class FileWindow final : public FileBytes {
 public:
  /// From `begin` on, which lies in the file and whose bytes in front have been touched.
  /// @throws IoError.
  static std::shared_ptr<const FileWindow> open(std::shared_ptr<const FileBytes> whole,
                                                std::uint64_t begin);

  void populate(std::uint64_t offset, std::uint64_t length) const override {
    whole_->populate(begin_ + offset, length);
  }
  void advise(std::uint64_t offset, std::uint64_t length, Advice advice) const noexcept override {
    whole_->advise(begin_ + offset, length, advice);
  }
  std::uint64_t resident_bytes() const override { return whole_->resident_bytes(); }
  std::uint64_t disk_bytes() const noexcept override { return whole_->disk_bytes(); }
  Backing backing() const noexcept override { return whole_->backing(); }

 private:
  FileWindow(std::shared_ptr<const FileBytes> whole, UniqueFd fd, std::uint64_t begin);
  void fill(std::uint64_t offset, std::uint64_t length) const override {
    whole_->touch(begin_ + offset, length);
  }

  std::shared_ptr<const FileBytes> whole_;
};

}  // namespace thalia::io
