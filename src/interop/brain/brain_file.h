// The file of a brain while it is written: with frames around it where its name asks for them.
#pragma once

#include <filesystem>
#include <optional>

#include "io/temporary_file.h"
#include "model/brain/stored_brain.h"
#include "thalia/options.h"
#include "thalia/writer.h"

namespace thalia::interop {

/// A writer writes the header last, at the front, and frames cannot be written out of order. So a
/// file with frames is first made plain, in a temporary file beside the target that needs no sync,
/// and is then compressed into the target.
class BrainFile {
 public:
  /// `stored` stays until the writer is committed, or its payloads were copied. @throws as Writer;
  /// UsageError for a name and a compression that contradict each other, and for a SHA-256 of a
  /// file with frames.
  BrainFile(const model::StoredBrain& stored, const std::filesystem::path& target,
            const SaveOptions& options);

  /// To be committed before finish().
  Writer& writer() noexcept { return writer_; }
  void set_work(Work work) noexcept { options_.work = std::move(work); }
  /// Puts the file with its frames at the target. @return `saved`, as it is true of that file.
  /// @throws as compress_checkpoint().
  SaveResult finish(SaveResult saved) const;

 private:
  std::filesystem::path target_;
  SaveOptions options_;
  std::optional<Codec> wrapper_;
  std::optional<io::TemporaryFile> plain_;
  Writer writer_;
};

}  // namespace thalia::interop
