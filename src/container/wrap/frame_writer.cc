// Readers may decode any frame alone, as frames have equal content and a table says where each
// begins. Workers read and encode; the calling thread writes the frames in their order.
#include "container/wrap/frame_writer.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/fail.h"
#include "base/ordered_pool.h"
#include "codec/frame/frame.h"
#include "container/wrap/frame_memory.h"
#include "container/wrap/seek_table.h"
#include "format/wrapper.h"

namespace thalia::container {
namespace {

// The pool uses jobs again, so both buffers are allocated only a few times.
struct FrameJob {
  std::uint64_t offset = 0;
  std::size_t length = 0;
  std::vector<std::byte> raw;
  std::vector<std::byte> frame;
};

}  // namespace

std::uint64_t write_frames(const FrameContent& source, const FrameForm& form, const Work& work,
                           OutputFile& out) {
  // Twice: the raw bytes of a job, and a frame that may be as large.
  const FrameMemory memory(2 * form.frame_bytes, work.threads);
  OrderedPool<FrameJob> pool(memory.threads, memory.jobs, [&](FrameJob& job) {
    job.raw.resize(job.length);
    source.read(job.offset, job.raw);
    codec::encode_frame(form.codec, form.level, job.raw, job.frame);
  });
  std::vector<format::SeekEntry> entries;
  std::uint64_t submitted = 0;
  bool any = false;  // empty content is one frame, too
  while (true) {
    while (!pool.full() && (submitted < source.size || !any)) {
      any = true;
      FrameJob& job = pool.next();
      job.offset = submitted;
      job.length = static_cast<std::size_t>(std::min(form.frame_bytes, source.size - submitted));
      submitted += job.length;
      pool.submit();
    }
    if (pool.empty()) break;
    stop_if_cancelled(work.cancel);
    const FrameJob& job = pool.front();
    // Readers refuse a seek table with more entries.
    if (entries.size() == format::kMaxSeekFrames) {
      fail_argument(ErrorCode::bad_argument, "frame_bytes", std::to_string(form.frame_bytes),
                    fmt::format("at most {} frames", format::kMaxSeekFrames));
    }
    format::SeekEntry& entry = entries.emplace_back();
    entry.stored_length = static_cast<std::uint32_t>(job.frame.size());  // 1 GiB and a little
    entry.content_length = static_cast<std::uint32_t>(job.length);
    out.write(job.frame);
    if (work.progress) work.progress(job.offset + job.length, source.size);
    pool.pop();
  }
  if (form.with_table) out.write(seek_table_bytes(form.codec, entries));
  return entries.size();
}

}  // namespace thalia::container
