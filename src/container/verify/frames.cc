// Checksums in a seek table are XXH64 of the contents, an addition of other writers that readers
// pass over. So each frame is decoded once more here; nothing was kept of what the reader decoded.
#include "container/verify/frames.h"

#include <vector>

#include "base/fail.h"
#include "base/parallel.h"
#include "container/wrap/seek_table.h"
#include "integrity/xxh64.h"

namespace thalia::container {

void verify_frames(const io::FileBytes& file, const VerifyOptions& options, Findings& findings) {
  const std::uint64_t size = file.bytes().size();
  const auto codec = find_wrapper(file.fd(), file.path(), size);
  if (!codec) return;
  const WrappedSource source{file.fd(), file.path(), size, *codec};
  const auto table = SeekTable::read(source, options.limits);
  if (!table || table->checksums().empty()) return;
  parallel_for(table->size(), options.work.threads, [&](std::size_t i) {
    stop_if_cancelled(options.work.cancel);
    const SeekTable::Frame frame = table->frame(i);
    std::vector<std::byte> stored;
    std::vector<std::byte> content(frame.content_length);
    try {
      decode_frame(source, frame, stored, content);
    } catch (const FormatError&) {
      return;  // was reported
    }
    const auto found = static_cast<std::uint32_t>(integrity::xxh64(content));
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
