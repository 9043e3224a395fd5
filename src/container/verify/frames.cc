// Checksums in a seek table are XXH64 of the contents, an addition of other writers that readers
// pass over. Contents are hashed where the reader has decoded them, so frames of any length take no
// memory here.
#include "container/verify/frames.h"

#include <algorithm>

#include "base/fail.h"
#include "base/parallel.h"
#include "container/wrap/seek_table.h"
#include "integrity/xxh64.h"

namespace thalia::container {

void verify_frames(const io::FileBytes& file, const io::FileBytes& contents,
                   const VerifyOptions& options, Findings& findings) {
  const std::uint64_t size = file.bytes().size();
  const auto front = find_wrapper(file.fd(), file.path(), size);
  if (!front) return;
  const WrappedSource source{file.fd(), file.path(), size, front->codec};
  const auto table = SeekTable::read(source, options.input.limits);
  if (!table || table->checksums().empty()) return;
  const ByteSpan all(contents.bytes().data() - contents.begin(),
                     contents.begin() + contents.bytes().size());
  if (table->content_bytes() != all.size()) return;  // the file is another by now
  parallel_for(table->size(), options.work.threads, [&](std::size_t i) {
    stop_if_cancelled(options.work.cancel);
    const SeekTable::Frame frame = table->frame(i);
    const std::uint64_t end = frame.content_offset + frame.content_length;
    try {
      // What stands in front of a window has been touched.
      const std::uint64_t begin = std::max(frame.content_offset, contents.begin());
      if (begin < end) contents.touch(begin - contents.begin(), end - begin);
    } catch (const FormatError&) {
      return;  // was reported
    }
    const auto found = static_cast<std::uint32_t>(
        integrity::xxh64(all.subspan(frame.content_offset, frame.content_length)));
    if (found == table->checksums()[i]) return;
    findings.add(
        {.code = ErrorCode::checksum_mismatch,
         .section = "wrapper",
         .field = "checksum",
         .region = {},
         .tensor = {},
         .offset = frame.stored_offset,
         .length = frame.stored_length,
         .message = fmt::format("frame {}: checksum {:#010x} of its content, expected {:#010x} as "
                                "the seek table says",
                                i, found, table->checksums()[i])});
  });
}

}  // namespace thalia::container
