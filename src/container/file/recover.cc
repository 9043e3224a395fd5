// Recovery writes the 256 bytes of the header and nothing else: it cuts off no debris and repairs
// no block. It writes only after find_commit_record() has proved the state of the record, and never
// over a header that holds. It holds the lock of the file from before its first look until after
// the sync, so no append runs in between. After a crash on the way the header still does not hold,
// or is the restored one; another recovery finds the same record. docs/format/writing.md,
// "Recovery".
#include "thalia/recover.h"

#include <algorithm>

#include "base/fail.h"
#include "container/file/checked_headers.h"
#include "container/file/commit_records.h"
#include "container/file/open_bytes.h"
#include "format/constants.h"
#include "format/header.h"
#include "format/overlay.h"
#include "io/file/file_bytes.h"
#include "io/file/locked_file.h"
#include "io/file/posix_file.h"

namespace thalia {
namespace {

// What is wrong with the header; empty if it holds. @throws the error of check_header() if
// that is no damage: another version, or a limit.
std::string find_fault(ByteSpan start, std::uint64_t size, const ReadLimits& limits) {
  try {
    container::check_header(format::overlay<format::Header>(start, 0, "header"), size, limits);
    return {};
  } catch (const Error& error) {
    if (!container::may_be_recovered(error, start)) throw;
    return error.what();
  }
}

RecoverResult recover_locked(const io::LockedFile& lock, const RecoverOptions& options) {
  stop_if_cancelled(options.work.cancel);
  auto file = io::FileBytes::open(lock.path(), options.input.access);
  const std::uint64_t size = file->bytes().size();
  const ByteSpan start = file->touched(0, std::min<std::uint64_t>(size, sizeof(format::Header)));
  container::require_plain(start, lock.path());
  RecoverResult result;
  result.fault = find_fault(start, size, options.input.limits);
  format::Header header;
  if (result.fault.empty()) {
    header = format::overlay<format::Header>(start, 0, "header");
  } else {
    // Only now all of it: of a file that is whole its ends are enough.
    file = io::FileBytes::open_whole(lock.path(), options.input.access, options.work.cancel);
    const container::RecordSearch search = container::find_commit_record(
        *file, options.input.limits, options.work.threads, options.work.cancel);
    result.records = search.records;
    if (!search.best) {
      throw IntegrityError(
          ErrorCode::checksum_mismatch, "the header does not hold, and nothing can take its place",
          {.section = "header",
           .value =
               result.fault + fmt::format("; {} commit records in {} bytes", search.records, size),
           .bound = "a header, or a commit record whose closing checksum holds"});
    }
    stop_if_cancelled(options.work.cancel);
    header = search.best->header;
    result.restored = true;
    result.record_offset = search.best->offset;
    result.damaged_blocks = search.best->damaged_blocks;
    io::pwrite_all(lock.fd(), 0, format::struct_bytes(header), lock.path());
    io::sync_file(lock.fd(), true, lock.path());
  }
  result.generation = header.generation;
  result.file_bytes = header.file_length;
  result.debris_bytes = size - header.file_length;
  result.closing_checksum = format::overlay<Digest256>(
      file->touched(header.file_length - format::kChecksumLength, format::kChecksumLength), 0,
      "checksum");
  return result;
}

}  // namespace

RecoverResult recover(const std::filesystem::path& path, const RecoverOptions& options) {
  return with_path(path.native(), [&] {
    return recover_locked(
        {path, io::LockedFile::Access::read_write, options.wait, options.work.cancel}, options);
  });
}

}  // namespace thalia
