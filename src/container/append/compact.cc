// An ordinary save of the live parts, stored as they are: payloads are verified and copied, never
// decoded. In place, the lock of an append is held until the new file has its name, so that no
// append in between is lost. docs/format/writing.md, "Compaction".
#include "thalia/append.h"

#include <optional>
#include <utility>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "container/append/copied_tensor.h"
#include "container/file/block_choice.h"
#include "container/file/open_bytes.h"
#include "container/file/open_file.h"
#include "container/write/file_save.h"
#include "format/header.h"
#include "io/file/locked_file.h"
#include "thalia/files.h"

namespace thalia {
namespace {

SaveOptions save_options(const format::Header& header, const ChangeOptions& options) {
  SaveOptions save;
  save.checksum = header.checksum_type;
  if (save.checksum == ChecksumType::block_tree) {
    save.leaves = header.leaf_algorithm;
    // A size that nobody chose follows the new file's length.
    save.block_log2 = container::chosen_block_log2(header);
  }
  save.timestamp = header.timestamp;
  save.output = options.output;
  save.compression.codec = Codec::none;  // tensors are copied as they are stored
  save.work = options.work;
  save.work.progress = {};
  return save;
}

CompactResult compact_file(const detail::OpenFile& file, const std::filesystem::path& output,
                           const ChangeOptions& options) {
  const Stopwatch watch;
  container::FileSave save(output, save_options(file.header(), options),
                           container::copied_file(file));
  const SaveResult saved = save.commit();
  return {{.input_bytes = file.mapping().bytes().size(),
           .output_bytes = saved.file_bytes,
           .tensors = saved.tensors,
           .seconds = watch.seconds()},
          saved.regions,
          saved.closing_checksum};
}

}  // namespace

CompactResult compact(const std::filesystem::path& path, const ChangeOptions& options) {
  return compact(path, path, options);
}

CompactResult compact(const std::filesystem::path& input, const std::filesystem::path& output,
                      const ChangeOptions& options) {
  const bool in_place = is_same_file(input, output);
  const ReadOptions read{.input = options.input, .work = options.work};
  std::optional<io::LockedFile> lock;
  std::shared_ptr<const detail::OpenFile> file;
  // As in Appender: the locked file may have been replaced before it was opened.
  do {
    if (in_place)
      lock.emplace(input, io::LockedFile::Access::read, options.wait, options.work.cancel);
    file = detail::OpenFile::open(input, read);
  } while (lock && !lock->is_at_path());
  if (in_place) container::require_plain(file->mapping());
  return file->named([&] { return compact_file(*file, output, options); });
}

}  // namespace thalia
