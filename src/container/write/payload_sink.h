// One payload whose bytes come in order, on its way to the file. Whole extents go out at once.
// Bytes that share an extent with something else are kept for the file's image.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "container/write/extent_writer.h"
#include "container/write/file_pieces.h"
#include "io/memory/aligned_buffer.h"
#include "thalia/types.h"

namespace thalia::container {

/// Keeps the ends of payloads in memory, up to a limit. Beyond it they go into the file through the
/// page cache, and are read back when their extent is hashed. Externally synchronised.
class TailBuffer {
 public:
  TailBuffer(FilePieces& image, std::uint64_t bound) : image_(image), left_(bound) {}
  /// @throws IoError.
  void keep(std::uint64_t offset, ByteSpan bytes);

 private:
  FilePieces& image_;
  std::uint64_t left_;
  std::deque<std::vector<std::byte>> bytes_;  ///< the image borrows them
};

/// For one payload after the other; several may be in use at once. Externally synchronised.
class PayloadSink {
 public:
  /// All are borrowed. @param alone no other sink uses the queue: extents are gathered in its
  /// buffers, and bytes that are appended are copied once.
  PayloadSink(ExtentWriter& extents, WriteQueue& queue, TailBuffer& kept, bool alone)
      : extents_(extents), queue_(queue), tail_(kept), alone_(alone) {}

  /// A payload that lies at `offset` in the file. The one before is finished.
  void begin(std::uint64_t offset) noexcept { at_ = gathered_from_ = offset; }
  /// @throws IoError.
  void append(ByteSpan bytes);
  /// The payload is complete. @throws IoError.
  void finish();

 private:
  MutableByteSpan gathering_memory();

  ExtentWriter& extents_;
  WriteQueue& queue_;
  TailBuffer& tail_;
  const bool alone_;
  std::unique_ptr<io::AlignedBuffer> own_;  ///< made when it is first needed
  MutableByteSpan extent_;                  ///< where the extent is gathered
  std::uint64_t gathered_from_ = 0;         ///< what the extent holds: from here
  std::uint64_t at_ = 0;                    ///< to here
};

}  // namespace thalia::container
