// Owns everything of one save: options, target, draft, store. The store borrows the other three and
// is made late, when nothing is declared any more: layout and codec are settled then. It is
// destroyed first.
#include "container/write/file_save.h"

#include <utility>

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

PayloadStore& FileSave::store() {
  process_.require("the file that is written", path().native());
  if (!store_) {
    draft_.check_complete();
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
  SaveResult result = finalize(target_ ? &*target_ : nullptr, draft_, *store_, options_);
  // After the file has its name: a sum without its file would be worse than a file without its sum.
  if (target_ && result.sha256) write_sha256_file(path(), *result.sha256, options_.output);
  return result;
}

void FileSave::discard() noexcept {
  if (target_) target_->discard();
}

}  // namespace thalia::container
