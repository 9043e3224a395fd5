// Compresses a file as independent frames of equal content with a seek table behind them, so that
// readers may decode any frame alone. Workers read and encode; the calling thread writes the frames
// in the order of the file and alone touches entries_. The target is committed as a whole after the
// table, so a failure or a stop leaves nothing behind. The source may be any file; one that becomes
// shorter meanwhile is an error. docs/format/format.md, "Wrappers".
#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/fail.h"
#include "base/ordered_pool.h"
#include "base/stopwatch.h"
#include "codec/chunk/codec.h"
#include "codec/frame/frame.h"
#include "container/wrap/frame_memory.h"
#include "container/wrap/seek_table.h"
#include "container/wrap/unwrap.h"
#include "format/header.h"
#include "format/v01.h"
#include "format/wrapper.h"
#include "io/posix_file.h"
#include "thalia/output_file.h"
#include "thalia/wrap.h"

namespace thalia {
namespace {

Codec codec_of(const std::filesystem::path& target, const CompressOptions& options) {
  if (const auto codec = options.compression.codec) {
    if (codec == Codec::zstd || codec == Codec::lz4) return *codec;
    fail_argument(ErrorCode::bad_argument, "codec", std::to_string(static_cast<int>(*codec)),
                  "1 (zstd) or 2 (lz4)");
  }
  if (const auto codec = container::wrapper_codec(target)) return *codec;
  throw UsageError(ErrorCode::bad_argument, "the target's name tells no codec, name one",
                   {.path = target.string(), .field = "codec", .bound = ".zst, .lz4"});
}

constexpr std::uint64_t kMostFrameBytes = 1 << 30;

struct ChunkJob {
  std::uint64_t offset = 0;
  std::size_t length = 0;
  std::vector<std::byte> raw;
  std::vector<std::byte> frame;
};

class WholeFile {
 public:
  WholeFile(const std::filesystem::path& source, const std::filesystem::path& target,
            const CompressOptions& options)
      : options_(options),
        codec_(codec_of(target, options)),
        level_(codec::checked_level(codec_, options.compression.level)),
        path_(source),
        fd_(io::open_for_reading(source)),
        size_(io::file_size(fd_.get(), source)),
        alone_(is_version_0_1()),
        frame_bytes_(alone_ ? std::max<std::uint64_t>(size_, 1) : options.frame_bytes) {
    check_option("frame_bytes", options.frame_bytes, 4096, kMostFrameBytes);
    if (frame_bytes_ > kMostFrameBytes) {
      throw UsageError(ErrorCode::bad_argument, "a file of version 0.1 has to be one frame",
                       {.path = source.string(),
                        .value = fmt::format("{} bytes", size_),
                        .bound = fmt::format("at most {}", kMostFrameBytes)});
    }
    container::check_not_the_source(source, target);
  }

  WrapResult run(const std::filesystem::path& target) {
    const Stopwatch watch;
    OutputFile out(target, options_.output, options_.work.cancel);
    // Twice: the raw bytes of a job, and a frame that may be as large.
    const container::FrameMemory memory(2 * frame_bytes_, options_.work.threads);
    OrderedPool<ChunkJob> pool(memory.threads, memory.jobs, [this](ChunkJob& job) { work(job); });
    std::uint64_t submitted = 0;
    bool any = false;  // an empty file is one frame, too
    while (true) {
      while (!pool.full() && (submitted < size_ || !any)) {
        any = true;
        ChunkJob& job = pool.next();
        job.offset = submitted;
        job.length = static_cast<std::size_t>(std::min(frame_bytes_, size_ - submitted));
        submitted += job.length;
        pool.submit();
      }
      if (pool.empty()) break;
      stop_if_cancelled(options_.work.cancel);
      take(pool.front(), out);
      pool.pop();
    }
    if (!alone_) out.write(container::seek_table_bytes(codec_, entries_));
    stop_if_cancelled(options_.work.cancel);
    out.commit();
    return {.codec = codec_,
            .frames = entries_.size(),
            .input_bytes = size_,
            .output_bytes = out.size(),
            .seconds = watch.seconds()};
  }

 private:
  // Readers of version 0.1 take one frame, with nothing behind it but a checksum:
  // docs/format/v01.md.
  bool is_version_0_1() const {
    format::V01Header header{};
    if (size_ < sizeof header) return false;
    io::pread_all(fd_.get(), 0, std::as_writable_bytes(std::span(&header, 1)), path_);
    return std::memcmp(header.magic, format::kMagic, sizeof header.magic) == 0 &&
           header.major_version == 0;
  }

  void work(ChunkJob& job) const {
    // The pool uses jobs again, so both buffers are allocated only a few times.
    job.raw.resize(job.length);
    io::pread_all(fd_.get(), job.offset, job.raw, path_);
    codec::encode_frame(codec_, level_, job.raw, job.frame);
  }

  void take(const ChunkJob& job, OutputFile& out) {
    // Readers refuse a seek table with more entries.
    if (entries_.size() == format::kMaxSeekFrames) {
      fail_argument(ErrorCode::bad_argument, "frame_bytes", std::to_string(options_.frame_bytes),
                    fmt::format("at most {} frames", format::kMaxSeekFrames));
    }
    format::SeekEntry entry;
    entry.stored_length = static_cast<std::uint32_t>(job.frame.size());  // 1 GiB and a little
    entry.content_length = static_cast<std::uint32_t>(job.length);
    entries_.push_back(entry);
    out.write(job.frame);
    if (options_.work.progress) options_.work.progress(job.offset + job.length, size_);
  }

  const CompressOptions& options_;
  Codec codec_;
  int level_;
  const std::filesystem::path& path_;
  io::UniqueFd fd_;
  std::uint64_t size_;
  bool alone_;  ///< all of it is one frame, without a table
  std::uint64_t frame_bytes_;
  std::vector<format::SeekEntry> entries_;
};

}  // namespace

WrapResult compress_checkpoint(const std::filesystem::path& source,
                               const std::filesystem::path& target,
                               const CompressOptions& options) {
  return WholeFile(source, target, options).run(target);
}

}  // namespace thalia
