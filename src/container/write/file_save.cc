// Owns everything of one save: options, target, draft, store. The store borrows the other three and
// is made late, when nothing is declared any more: layout and codec are settled then. It is
// destroyed first.
#include "container/write/file_save.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "codec/chunk/codec.h"
#include "container/write/compression_probe.h"
#include "container/write/file_digest.h"
#include "container/write/finalize.h"

namespace thalia::container {

FileSave::FileSave(const std::filesystem::path& target, CheckedOptions options, Draft draft)
    : options_(std::move(options).get()),
      target_(std::in_place, target,
              io::AtomicFileOptions{.output = options_.output, .cancel = options_.work.cancel}),
      draft_(std::move(draft)) {
  if (options_.sha256) check_sha256_name(path(), options_.output);
}

FileSave::FileSave(int fd, std::filesystem::path name, CheckedOptions options, Draft draft)
    : options_(std::move(options).get()),
      fd_(fd),
      name_(std::move(name)),
      draft_(std::move(draft)) {}

FileSave::FileSave(FramesTarget target, CheckedOptions options, Draft draft)
    : options_(std::move(options).get()), draft_(std::move(draft)) {
  if (options_.sha256) {
    fail_argument(ErrorCode::bad_argument, "sha256", "true",
                  "false for a file that is compressed as a whole");
  }
  form_ = {.codec = target.codec, .level = codec::checked_level(target.codec, target.level)};
  options_.io = IoMode::buffered;
  frames_.emplace(target.path, options_.output, options_.work.cancel);
  name_ = frames_->path();
}

PayloadStore& FileSave::store() {
  process_.require("the file that is written", path().native());
  if (!store_) {
    draft_.check_complete();
    if (frames_ && std::ranges::any_of(draft_.tensors, &DraftTensor::streamed)) {
      throw UsageError(ErrorCode::wrong_state, "a streamed payload of a file in frames",
                       {.path = path().string()});
    }
    // First, since it writes to the file and empties it again.
    settle_compression(options_, draft_, fd(), path());
    store_.emplace(draft_, fd(), path(), options_);
  }
  return *store_;
}

SaveResult FileSave::commit() {
  store().finish();
  if (target_ && options_.sha256 && options_.output.replace)
    remove_sha256_file(path(), options_.output);
  if (frames_) {
    SaveResult result = finalize(nullptr, draft_, *store_, options_,
                                 [this](const FilePieces& image, std::uint64_t length) {
                                   return write_frames(image, length);
                                 });
    result.file_bytes = frames_->size();
    result.codec = form_.codec;
    return result;
  }
  SaveResult result = finalize(target_ ? &*target_ : nullptr, draft_, *store_, options_);
  // After the file has its name: a sum without its file would be worse than a file without its sum.
  if (target_ && result.sha256) write_sha256_file(path(), *result.sha256, options_.output);
  return result;
}

double FileSave::write_frames(const FilePieces& image, std::uint64_t length) {
  Work work = options_.work;
  work.progress = {};  // that of the digests was the whole
  container::write_frames(
      {.size = length,
       .read = [&](std::uint64_t offset,
                   MutableByteSpan out) { image.copy(offset, offset + out.size(), out); }},
      form_, work, *frames_);
  stop_if_cancelled(work.cancel);
  return frames_->commit();
}

void FileSave::discard() noexcept {
  if (target_) target_->discard();
  frames_.reset();
}

}  // namespace thalia::container
