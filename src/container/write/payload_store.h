// Brings payloads on their way to the file, once the declarations have ended: raw streamed payloads
// at offsets that are known beforehand, compressed ones one after the other. Sits between the plan
// (what was declared) and finalize() (everything around the payloads). docs/contribute/design.md,
// "One pass".
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "container/plan/file_plan.h"
#include "container/plan/layout.h"
#include "container/write/chunk_pipeline.h"
#include "container/write/extent_writer.h"
#include "container/write/file_pieces.h"
#include "container/write/memory_shares.h"
#include "container/write/payload_sink.h"
#include "container/write/progress.h"
#include "thalia/options.h"

namespace thalia::container {

/// Borrowed raw payloads are not touched: they are written with the file's image. Externally
/// synchronised.
class PayloadStore {
 public:
  /// The plan and the options are borrowed.
  PayloadStore(FilePlan& plan, int fd, const std::filesystem::path& path,
               const SaveOptions& options);

  /// Appends to a streamed payload. @throws UsageError (size_mismatch, wrong_state), IoError.
  void write(std::uint32_t tensor, ByteSpan piece);
  /// The same, of the next piece of the content hash, digested already, as are all of the tensor.
  /// Its memory may be taken, and other memory left in its place.
  void write(std::uint32_t tensor, std::vector<std::byte>& piece,
             const integrity::PieceDigest& digest);
  /// Stores what is borrowed if it has to be compressed, and ends the layout.
  /// @throws UsageError (size_mismatch) naming a streamed tensor that is incomplete.
  void finish();

  /// Every streamed payload is complete. @throws UsageError (size_mismatch) naming one that is not.
  void check_complete() const;
  /// Waits until nothing that was given is on its way: what is borrowed may move, and another
  /// thread may go on. After check_complete(). @throws IoError, CancelledError.
  void drain();

  const Layout& layout() const noexcept { return layout_; }
  /// After finish(): what is kept of payloads, and those that lie in the file.
  FilePieces& image() noexcept { return image_; }
  /// After finish(): with the extents that were put.
  ExtentWriter& extents() noexcept { return extents_; }
  ProgressMeter& progress() noexcept { return progress_; }

 private:
  struct Stream {
    std::uint64_t written = 0;
    integrity::ContentHasher hasher;
    std::vector<integrity::PieceDigest> pieces;  ///< in its place, where they came digested
    std::unique_ptr<PayloadSink> sink;           ///< null if too many are in use
  };

  // A delta's parts are compressed too, so their stored lengths are not known beforehand.
  bool compressing() const noexcept {
    return options_.compression.codec != Codec::none || plan_.delta;
  }
  /// null where there is nothing to write. @throws UsageError.
  Stream* begin_write(std::uint32_t tensor, std::uint64_t size);
  void end_write(std::uint32_t tensor, Stream& stream, std::uint64_t size);
  Stream& stream_of(std::uint32_t tensor);
  void write_raw(const TensorPlan& tensor, Stream& stream, ByteSpan piece);
  void end_raw(const TensorPlan& tensor, Stream& stream);
  void advance_to(std::uint32_t tensor);
  [[noreturn]] void fail_incomplete(std::uint32_t tensor) const;

  FilePlan& plan_;
  const SaveOptions& options_;
  ProgressMeter progress_;
  Layout layout_;
  FilePieces image_;
  ExtentWriter extents_;
  const MemoryShares shares_;
  TailBuffer tail_;
  WriteQueue queue_;
  std::vector<std::unique_ptr<Stream>> streams_;  ///< by tensor; null until its first byte
  std::vector<std::unique_ptr<PayloadSink>> idle_sinks_;
  std::size_t sinks_left_;  ///< that may still be made
  // When compressing:
  std::unique_ptr<PayloadSink> sink_;
  std::unique_ptr<ChunkPipeline> pipeline_;
  std::size_t next_ = 0;  ///< position in the file order
};

}  // namespace thalia::container
