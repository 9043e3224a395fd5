// One Zstandard frame (RFC 8878) made piece by piece, as programs make it that do not know how much
// there will be.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "thalia/types.h"

namespace thalia::codec {

/// The frame has no checksum, and no content size unless it is empty or expect() has told it. How
/// the content is cut into pieces does not change it. Memory is what the level's window takes.
/// Externally synchronised.
class ZstdEncoder {
 public:
  using Sink = std::function<void(ByteSpan piece)>;

  /// @param level 1 to 22. @throws std::bad_alloc.
  explicit ZstdEncoder(int level);
  ~ZstdEncoder();
  ZstdEncoder(const ZstdEncoder&) = delete;
  ZstdEncoder& operator=(const ZstdEncoder&) = delete;

  /// Before the first piece of a frame: how many bytes its content has.
  void expect(std::uint64_t content_bytes);
  /// What is ready of the frame goes to the sink, whose exceptions pass through.
  void write(ByteSpan raw, const Sink& sink);
  /// Hands on the rest; the next piece begins another frame.
  void finish(const Sink& sink);

 private:
  struct State;
  void step(ByteSpan raw, bool end, const Sink& sink);
  std::unique_ptr<State> state_;
};

}  // namespace thalia::codec
