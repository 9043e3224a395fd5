// What the frames of a file hold, from the front, where no table says where they begin.
// docs/format/format.md, "Wrappers".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "codec/frame/frame.h"
#include "container/wrap/seek_table.h"
#include "thalia/types.h"

namespace thalia::container {

/// Takes the memory of the decoder and a buffer, whatever the frames say. Externally synchronised.
class FrameStream {
 public:
  /// @param table of the file, which outlives this; nullptr if it has none.
  explicit FrameStream(const FramedFile& file, const SeekTable* table = nullptr);

  /// The next bytes of the content, as many as there is room for; fewer only where it ends, then 0.
  /// @throws IoError; FormatError for a broken frame, a frame that does not end, another codec's
  /// frame, bytes that begin none, and frames that are not those of the table.
  std::size_t read(MutableByteSpan room);
  std::uint64_t consumed() const noexcept { return offset_ - left_.size(); }  ///< of the file
  std::uint64_t frames() const noexcept { return frames_; }  ///< ended, skippable ones not counted

 private:
  void refill();
  void begin_frame();
  void check_with_table(bool frame_ended) const;
  [[noreturn]] void fail_frame_count() const;

  FramedFile file_;
  const SeekTable* table_;
  std::unique_ptr<codec::FrameDecoder> decoder_;
  std::vector<std::byte> buffer_;
  ByteSpan left_;                    ///< of the buffer
  std::uint64_t offset_ = 0;         ///< in the file, after the buffer
  std::uint64_t frame_at_ = 0;       ///< where the frame begins
  std::uint64_t frame_content_ = 0;  ///< bytes of it that were handed out
  std::uint64_t frames_ = 0;
  bool inside_ = false;
  bool skippable_ = false;
};

}  // namespace thalia::container
