// Brings payloads to their places: raw ones at offsets known beforehand, compressed ones one behind
// the other.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "container/chunk_stream.h"
#include "container/draft.h"
#include "container/layout.h"

namespace thalia::container {

/// Made when the declarations end. Borrowed raw payloads are not touched: they are written with the
/// file's image. Externally synchronised.
class PayloadStore {
 public:
  PayloadStore(Draft& draft, ChunkTarget target);

  /// Appends to a streamed payload. @throws UsageError (size_mismatch, wrong_state), IoError.
  void write(std::uint32_t tensor, ByteSpan piece);
  /// Stores what is borrowed where it has to be compressed, and ends the layout.
  /// @throws UsageError (size_mismatch) naming a streamed tensor that is incomplete.
  void finish();

  const Layout& layout() const noexcept { return layout_; }

 private:
  bool compressing() const noexcept { return target_.codec != format::Codec::store; }
  void place_raw();
  void write_compressed(std::uint32_t tensor, ByteSpan piece);
  void begin(std::uint32_t tensor);
  void end(std::uint32_t tensor);
  void advance_to(std::uint32_t tensor);
  [[noreturn]] void fail_incomplete(std::uint32_t tensor) const;

  struct Stream {
    std::uint64_t written = 0;
    integrity::ContentHasher hasher;
  };

  Draft& draft_;
  ChunkTarget target_;
  Layout layout_;
  std::vector<std::unique_ptr<Stream>> streams_;  ///< by tensor; null until its first byte
  std::size_t next_ = 0;                          ///< position in the file order, when compressing
  std::unique_ptr<ChunkStream> open_;  ///< of the tensor at next_, while it is being streamed
};

}  // namespace thalia::container
