#include "interop/brain/brain_file.h"

#include <utility>

#include "base/fail.h"
#include "interop/brain/packing.h"

namespace thalia::interop {
namespace {

using std::filesystem::path;

// The file inside the frames.
SaveOptions plain_options(const SaveOptions& options, OutputOptions output) {
  // The sum would be that of the temporary file, which nobody sees.
  if (options.sha256) {
    fail_argument(ErrorCode::bad_argument, "sha256", "true",
                  "false for a file that is compressed as a whole");
  }
  SaveOptions plain = options;
  plain.output = std::move(output);
  plain.output.reproducible = options.output.reproducible;
  plain.compression = {};
  return plain;
}

Writer writer_of(const model::StoredBrain& stored, const path& target, const SaveOptions& options,
                 std::optional<io::TemporaryFile>& plain, bool is_wrapped) {
  if (!is_wrapped) return model::declared_writer(stored, target, options);
  plain.emplace(target, options.output.within);
  return model::declared_writer(stored, plain->path(), plain_options(options, plain->output()));
}

}  // namespace

BrainFile::BrainFile(const model::StoredBrain& stored, const path& target,
                     const SaveOptions& options)
    : target_(target),
      options_(options),
      wrapper_(wrapper_for(target, options)),
      writer_(writer_of(stored, target, options, plain_, wrapper_.has_value())) {}

SaveResult BrainFile::finish(SaveResult saved) const {
  if (!wrapper_) return saved;
  saved.file_bytes = wrap(plain_->path(), target_, *wrapper_, options_);
  saved.codec = *wrapper_;
  return saved;
}

}  // namespace thalia::interop
