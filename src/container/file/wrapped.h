// The bytes inside a wrapped file: frames are decoded into memory when bytes of them are first
// asked for. docs/format/format.md, "Wrappers".
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "container/wrap/seek_table.h"
#include "io/file/file_bytes.h"
#include "io/file/memory_file.h"
#include "io/system/process.h"
#include "thalia/options.h"

namespace thalia::container {

/// Reserves address space for the whole content; with a seek table only frames that were touched
/// cost memory. Internally synchronised: each frame is decoded once, whatever many threads touch
/// it.
class WrappedFile final : public io::FileBytes {
 public:
  /// Without a seek table all of the content is decoded here. @param file the wrapped file, read
  /// through its descriptor. @throws IoError; FormatError for broken frames or seek tables, for a
  /// content that is no .thalia file, and (limit_exceeded) for one of more than
  /// max_allocation_bytes; UnsupportedError for one of another major version.
  static std::shared_ptr<const WrappedFile> open(std::shared_ptr<const io::FileBytes> file,
                                                 Codec codec, const ReadLimits& limits);

  io::Backing backing() const noexcept override { return io::Backing::decoded; }
  void populate(std::uint64_t offset, std::uint64_t length) const override { fill(offset, length); }
  void advise(std::uint64_t, std::uint64_t, io::Advice) const noexcept override {}
  std::uint64_t resident_bytes() const override { return resident_.load(); }

  std::uint64_t disk_bytes() const noexcept override { return file_->bytes().size(); }
  /// Frames that were decoded so far; all of them in a file without seek table.
  std::uint64_t decoded_frames() const noexcept { return decoded_frames_.load(); }

 private:
  WrappedFile(std::shared_ptr<const io::FileBytes> file, Codec codec,
              std::optional<SeekTable> table, io::UniqueFd memory);
  FramedFile source() const { return {file_->fd(), file_->path(), file_->bytes().size(), codec_}; }
  std::uint64_t decode_all(const ReadLimits& limits);
  void fill(std::uint64_t offset, std::uint64_t length) const override;
  void decode(std::size_t frame) const;

  std::shared_ptr<const io::FileBytes> file_;
  Codec codec_;
  std::optional<SeekTable> table_;
  std::optional<io::MemoryMapping> memory_;
  // Frames are decoded under their lock, and never again: what was handed out does not change.
  mutable std::array<io::ThreadLock, 64> locks_;
  std::unique_ptr<std::atomic<bool>[]> done_;  ///< one a frame of the table
  mutable std::atomic<std::uint64_t> resident_ = 0;
  mutable std::atomic<std::uint64_t> decoded_frames_ = 0;
};

}  // namespace thalia::container
