// Where the frames of a wrapped file begin. docs/format/format.md, "Wrappers".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "format/wrapper.h"
#include "io/file/posix_file.h"
#include "thalia/compress.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::container {

/// A wrapped file, open; borrowed. `path` is for messages.
struct FramedFile {
  int fd;
  const std::filesystem::path& path;
  std::uint64_t size;
  Codec codec;  ///< of its first frame
};

/// The first frame of a wrapped file that holds a part of the contents.
struct FrontFrame {
  Codec codec;
  std::uint64_t offset;  ///< after the skippable frame, if one comes first
};

/// nullopt if a file begins with no frame, or with more than one to skip. @throws IoError.
std::optional<FrontFrame> find_wrapper(int fd, const std::filesystem::path& path,
                                       std::uint64_t size);
/// The same of a file in memory.
std::optional<FrontFrame> find_wrapper(ByteSpan file);

/// Where each frame lies and what it may hold. All lengths and sums were checked: no sum overflows,
/// and no frame claims more content than its stored bytes can hold. Immutable.
class SeekTable {
 public:
  struct Frame {
    std::uint64_t stored_offset;
    std::uint64_t stored_length;
    std::uint64_t content_offset;
    std::uint64_t content_length;
  };

  /// nullopt if the file ends with none. @throws FormatError if it breaks a rule, or takes
  /// more than max_allocation_bytes.
  static std::optional<SeekTable> read(const FramedFile& file, const ReadLimits& limits);

  std::size_t size() const noexcept { return starts_.size() - 1; }
  std::uint64_t content_bytes() const noexcept { return starts_.back().content; }
  /// What the largest frame takes in memory, stored bytes and content together.
  std::uint64_t longest_frame() const noexcept { return longest_; }
  Frame frame(std::size_t i) const noexcept {
    return {starts_[i].stored, starts_[i + 1].stored - starts_[i].stored, starts_[i].content,
            starts_[i + 1].content - starts_[i].content};
  }
  /// The low half of the XXH64 of each frame's content; empty if the table has none.
  std::span<const std::uint32_t> checksums() const noexcept { return checksums_; }
  /// The frame that holds a byte of the content, which lies before content_bytes().
  std::size_t frame_at(std::uint64_t content_offset) const noexcept;

 private:
  struct Start {
    std::uint64_t stored;
    std::uint64_t content;
  };
  std::vector<Start> starts_;  ///< and where the last frame ends
  std::vector<std::uint32_t> checksums_;
  std::uint64_t longest_ = 0;
};

/// The skippable frame for these entries, of which there are at most kMaxSeekFrames.
std::vector<std::byte> seek_table_bytes(Codec codec, std::span<const format::SeekEntry> entries);

/// read_wrapper() of an open file. `path` is for messages.
std::optional<WrapperInfo> wrapper_of(int fd, const std::filesystem::path& path,
                                      const ReadLimits& limits);

/// Reads a frame into `stored`, which it may make larger, and decodes it into `content`, of
/// content_length bytes. @throws IoError, FormatError that names the frame.
void decode_frame(const FramedFile& file, const SeekTable::Frame& frame,
                  std::vector<std::byte>& stored, MutableByteSpan content);

}  // namespace thalia::container
