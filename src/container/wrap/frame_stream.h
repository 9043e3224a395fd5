// What the frames of a file hold, from the front, where no table says where they begin.
// docs/format.md, "Wrappers".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "codec/frame/frame.h"
#include "container/wrap/seek_table.h"
#include "thalia/bytes.h"

namespace thalia::container {

/// Takes the memory of the decoder and a buffer, whatever the frames say. Externally synchronised.
class FrameStream {
 public:
  explicit FrameStream(const WrappedSource& file);

  /// The next bytes of the content, as many as there is room for; fewer only where it ends, then 0.
  /// @throws IoError; FormatError for a broken frame, a frame that does not end, another codec's
  /// frame and bytes that begin none.
  std::size_t read(MutableByteSpan room);
  std::uint64_t consumed() const noexcept { return offset_ - left_.size(); }  ///< of the file
  std::uint64_t frames() const noexcept { return frames_; }  ///< ended, skippable ones not counted

 private:
  void refill();
  void begin_frame();

  WrappedSource file_;
  std::unique_ptr<codec::FrameDecoder> decoder_;
  std::vector<std::byte> buffer_;
  ByteSpan left_;               ///< of the buffer
  std::uint64_t offset_ = 0;    ///< in the file, behind the buffer
  std::uint64_t frame_at_ = 0;  ///< where the frame begins
  std::uint64_t frames_ = 0;
  bool inside_ = false;
  bool skippable_ = false;
};

}  // namespace thalia::container
