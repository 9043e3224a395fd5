// Compressed frames that follow each other in a file: whole ones, and frames decoded piece by
// piece, whose lengths and contents need not be known nor fit in memory. docs/format/format.md,
// "Wrappers".
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::codec {

/// Bytes of a frame from which frame_kind() and content_size() tell all they can.
inline constexpr std::size_t kFrameStart = 18;

enum class FrameKind { none, zstd, lz4, skippable };

/// What begins with these bytes: a Zstandard frame (RFC 8878), an LZ4 frame, a skippable frame of
/// either, or none of them.
FrameKind frame_kind(ByteSpan start) noexcept;

/// The content size in the header of a zstd or lz4 frame; nullopt if it has none.
/// `start` is the frame, or its first kFrameStart bytes. @throws CompressionError for a
/// header that is broken or too short.
std::optional<std::uint64_t> content_size(ByteSpan start);

/// The most bytes that a frame of `stored_length` bytes can decode to, roughly: a content size
/// beyond it is a lie, which is known before anything is allocated. At most 2^64 - 1.
std::uint64_t most_content(FrameKind kind, std::uint64_t stored_length) noexcept;

/// Decodes one frame into exactly raw.size() bytes; its own content size, if it has one, must say
/// so. @param codec zstd or lz4. @throws CompressionError.
void decode_frame(Codec codec, ByteSpan stored, MutableByteSpan raw);

/// Replaces `out` by a frame of `raw` with content size, unless there is no content, and content
/// checksum. `level` is 1 to 22 for zstd, 1 to 12 for lz4.
void encode_frame(Codec codec, int level, ByteSpan raw, std::vector<std::byte>& out);

/// One frame after another, of one codec. Memory is bounded by what the codec needs: of zstd a
/// window of 128 MiB at most. Externally synchronised.
class FrameDecoder {
 public:
  struct Step {
    std::size_t consumed = 0;  ///< of the stored bytes
    std::size_t written = 0;   ///< of the room
    bool frame_ended = false;  ///< the next byte belongs to what follows the frame
  };

  /// @param codec zstd or lz4. @throws std::bad_alloc.
  static std::unique_ptr<FrameDecoder> create(Codec codec);
  virtual ~FrameDecoder() = default;
  FrameDecoder(const FrameDecoder&) = delete;
  FrameDecoder& operator=(const FrameDecoder&) = delete;

  /// Goes on with the frame, as far as input and room go, and stops where it ends. The first call
  /// for a frame, or for a skippable one, gets its magic number. @throws CompressionError,
  /// also for a content checksum that differs.
  Step decode(ByteSpan stored, MutableByteSpan room);

 protected:
  explicit FrameDecoder(FrameKind kind) : kind_(kind) {}
  virtual Step advance(ByteSpan stored, MutableByteSpan room) = 0;

 private:
  FrameKind kind_;
  bool inside_ = false;
};

}  // namespace thalia::codec
