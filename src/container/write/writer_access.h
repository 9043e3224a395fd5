// What a save in the background does with a writer besides committing it.
#pragma once

#include <filesystem>

#include "container/write/file_save.h"
#include "format/quantized.h"
#include "thalia/writer.h"

namespace thalia::container {

struct WriterAccess {
  /// A writer of a file that is compressed as a whole, as FileSave says. @throws as that.
  static Writer in_frames(const FramesTarget& target, const SaveOptions& options);
  /// As Writer::add_tensor(), for the arrays of a quantized tensor, which `side` describes.
  static TensorId add_quantized(Writer& writer, RegionId region, TensorSpec spec,
                                const format::QuantizedSideData& side, ByteSpan payload);
  /// Ends what is on its way of streamed payloads, so that commit() can be left to another thread
  /// and the draft may be made to borrow other memory. The save stays where it is when the writer
  /// is moved.
  /// @throws UsageError (wrong_state) for a writer that was committed, has failed, or was moved
  /// from; UsageError for one that is incomplete, which it leaves as it is; IoError.
  static FileSave& settle(Writer& writer);
  /// What a writer has been told so far. @throws UsageError (wrong_state) for one that was moved
  /// from.
  static const Draft& declared(const Writer& writer);
  /// Where the file will be, links resolved, and how it is saved. @throws the same.
  static const std::filesystem::path& target(const Writer& writer);
  static const SaveOptions& options(const Writer& writer);

 private:
  static Writer::Impl& impl(const Writer& writer);
};

}  // namespace thalia::container
