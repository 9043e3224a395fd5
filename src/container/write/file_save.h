// One file from its plan to its name: the way of every save that makes a whole file.
// docs/format/writing.md, "Commit".
#pragma once

#include <filesystem>
#include <optional>

#include "container/plan/check_options.h"
#include "container/plan/file_plan.h"
#include "container/wrap/frame_writer.h"
#include "container/write/payload_store.h"
#include "format/quantized.h"
#include "io/output/atomic_file.h"
#include "io/system/process.h"
#include "thalia/files.h"
#include "thalia/options.h"
#include "thalia/writer.h"

namespace thalia::container {

/// A file that is compressed as a whole. docs/format/format.md, "Wrappers".
struct FramesTarget {
  std::filesystem::path path;
  Codec codec;    ///< zstd or lz4
  int level = 0;  ///< 0: the codec's own
};

/// First the plan is filled. The first call of store() closes it, and streamed payloads are
/// written. commit() stores the borrowed ones and everything around them. A reader sees the whole
/// file or none of it. Destroyed before commit(), it leaves nothing. Externally synchronised.
class FileSave {
 public:
  /// @throws as io::AtomicFile; IoError (ENAMETOOLONG) if
  /// a SHA-256 is asked for and its file cannot have its name.
  FileSave(const std::filesystem::path& target, CheckedOptions options, FilePlan plan = {});
  /// Into an empty file that is open for writing, is not synced, and gets no name. `name` is for
  /// messages.
  FileSave(int fd, std::filesystem::path name, CheckedOptions options, FilePlan plan = {});
  /// In frames. What they hold is never in a file of its own: it
  /// is digested where it is in memory, and then compressed from there. So nothing may be streamed,
  /// and the options have no compression. @throws as the first; UsageError for a level out of range
  /// and a SHA-256.
  FileSave(const FramesTarget& target, CheckedOptions options, FilePlan plan = {});
  FileSave(const FileSave&) = delete;
  FileSave& operator=(const FileSave&) = delete;

  int fd() const noexcept { return target_ ? target_->fd() : fd_; }
  const std::filesystem::path& path() const noexcept { return target_ ? target_->path() : name_; }
  FilePlan& plan() noexcept { return plan_; }
  const FilePlan& plan() const noexcept { return plan_; }
  const SaveOptions& options() const noexcept { return options_; }
  void set_work(Work work) noexcept { options_.work = std::move(work); }

  bool has_begun() const noexcept { return store_.has_value(); }
  /// In a forked child, which shares the file with its parent, and has not the threads of a save
  /// that has begun.
  bool is_foreign() const noexcept { return !process_.is_this(); }
  /// Ends the declarations, and chooses the codec. @throws UsageError for a plan that is not
  /// complete; IoError.
  PayloadStore& store();
  /// @return what SaveResult says, but for `seconds`. @throws UsageError for what was not streamed;
  /// IoError; CancelledError.
  SaveResult commit();
  void discard() noexcept;

 private:
  double write_frames(const FilePieces& image, std::uint64_t length);

  const io::OwnProcess process_;
  SaveOptions options_;
  std::optional<io::AtomicFile> target_;  ///< where the file gets a name
  std::optional<OutputFile> frames_;      ///< if it is compressed as a whole
  FrameForm form_;                        ///< of these frames
  int fd_ = -1;
  std::filesystem::path name_;
  FilePlan plan_;
  std::optional<PayloadStore> store_;  ///< borrows the plan and the options
};

// What the library needs of a Writer besides its public side.

/// A writer of a file that is compressed as a whole, as FileSave says. @throws as that.
Writer writer_in_frames(const FramesTarget& target, const SaveOptions& options);
/// As Writer::add_tensor(), for the arrays of a quantized tensor, which `side` describes.
TensorId add_quantized(Writer& writer, RegionId region, TensorSpec spec,
                       const format::QuantizedSideData& side, ByteSpan payload);
/// Ends what is on its way of streamed payloads, so that commit() can be left to another thread and
/// the plan may be made to borrow other memory. The save stays where it is when the writer is
/// moved. @throws UsageError (wrong_state) for a writer that was committed, has failed, or was
/// moved from; UsageError for one that is incomplete, which it leaves as it is; IoError.
FileSave& finish_streaming(Writer& writer);
/// What a writer has been told so far, and where the file will be, links resolved. @throws
/// UsageError (wrong_state) for one that was moved from.
const FileSave& file_save_of(const Writer& writer);

}  // namespace thalia::container
