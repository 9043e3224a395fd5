// Restores the file that frames hold, or a packed delta stands for. With a seek table all threads
// decode, and the calling thread writes the contents in their order. Without one, or where frames
// are too large for that, one thread decodes from the front in pieces of 256 KiB, whatever the
// frames say of their size. Either way the frames have to be those of the table, if there is one.
// The target is committed as a whole at the end. Every claim of the file is checked against the
// limits first: the table against max_allocation_bytes, its content against max_file_bytes, and
// without a table each piece.
#include <algorithm>
#include <optional>
#include <vector>

#include "base/fail.h"
#include "base/ordered_pool.h"
#include "base/stopwatch.h"
#include "container/wrap/frame_memory.h"
#include "container/wrap/frame_stream.h"
#include "container/wrap/packed.h"
#include "container/wrap/seek_table.h"
#include "io/file/posix_file.h"
#include "io/memory/allocation_limit.h"
#include "thalia/compress.h"
#include "thalia/files.h"

namespace thalia {
namespace {

using container::FramedFile;
using container::FrameStream;
using container::SeekTable;

// Files with larger frames are decoded in order: each thread would have two of them in memory,
// each as it is stored and as it is decoded.
constexpr std::uint64_t kLargestWhole = 128 << 20;
constexpr std::size_t kPiece = 256 << 10;

Codec require_wrapper(int fd, const std::filesystem::path& path, std::uint64_t size) {
  if (const auto front = container::find_wrapper(fd, path, size)) return front->codec;
  throw FormatError(ErrorCode::bad_magic, "neither a zstd nor an lz4 file",
                    {.path = path.string(), .section = "wrapper", .offset = 0});
}

struct FrameJob {
  SeekTable::Frame frame{};
  std::vector<std::byte> stored;
  std::vector<std::byte> content;
};

class Decompression {
 public:
  Decompression(const std::filesystem::path& source, const std::filesystem::path& target,
                const DecompressOptions& options)
      : options_(options), fd_(io::open_for_reading(source)) {
    const std::uint64_t size = io::file_size(fd_.get(), source);
    source_.emplace(FramedFile{fd_.get(), source, size, require_wrapper(fd_.get(), source, size)});
    container::check_not_the_source(source, target);
  }

  WrapResult run(const std::filesystem::path& target) {
    const Stopwatch watch;
    const auto table = SeekTable::read(*source_, options_.input.limits);
    // Before the target is created: a file that claims too much writes nothing.
    if (table) check_size(table->content_bytes());
    OutputFile out(target, options_.output, options_.work.cancel);
    std::uint64_t frames = 0;
    if (table && table->longest_frame() <= kLargestWhole) {
      restore_frames(*table, out);
      frames = table->size();
    } else {
      frames = restore_in_order(table ? &*table : nullptr, out);
    }
    stop_if_cancelled(options_.work.cancel);
    out.commit();
    return {.codec = source_->codec,
            .frames = frames,
            .input_bytes = source_->size,
            .output_bytes = out.size(),
            .seconds = watch.seconds()};
  }

 private:
  void check_size(std::uint64_t bytes) const {
    const std::uint64_t most = options_.input.limits.max_file_bytes;
    if (most != 0 && bytes > most) fail_limit("wrapper", "max_file_bytes", bytes, most);
  }

  void restore_frames(const SeekTable& table, OutputFile& out) {
    const container::FrameMemory memory(table.longest_frame(), options_.work.threads);
    OrderedPool<FrameJob> pool(memory.threads, memory.jobs, [this](FrameJob& job) {
      job.content.resize(job.frame.content_length);
      container::decode_frame(*source_, job.frame, job.stored, job.content);
    });
    std::size_t submitted = 0;
    while (true) {
      while (!pool.full() && submitted < table.size()) {
        pool.next().frame = table.frame(submitted++);
        pool.submit();
      }
      if (pool.empty()) break;
      stop_if_cancelled(options_.work.cancel);
      const FrameJob& job = pool.front();
      out.write(job.content);
      report(job.frame.stored_offset + job.frame.stored_length);
      pool.pop();
    }
  }

  std::uint64_t restore_in_order(const SeekTable* table, OutputFile& out) {
    FrameStream stream(*source_, table);
    std::vector<std::byte> piece(kPiece);
    while (const std::size_t length = stream.read(piece)) {
      stop_if_cancelled(options_.work.cancel);
      // Checked before each piece is written: here no table says how much there will be.
      check_size(out.size() + length);
      out.write(ByteSpan(piece).first(length));
      report(stream.consumed());
    }
    return stream.frames();
  }

  void report(std::uint64_t done) const {
    if (options_.work.progress) options_.work.progress(done, source_->size);
  }

  const DecompressOptions& options_;
  io::UniqueFd fd_;
  std::optional<FramedFile> source_;
};

WrapResult unpack_file(int fd, const std::filesystem::path& source,
                       const std::filesystem::path& target, const DecompressOptions& options) {
  const Stopwatch watch;
  container::check_not_the_source(source, target);
  const ReadLimits& limits = options.input.limits;
  const std::vector<std::byte> packed = container::read_packed(fd, source);
  const std::uint64_t length = container::packed_contents_length(packed);
  if (limits.max_file_bytes != 0 && length > limits.max_file_bytes)
    fail_limit("wrapper", "max_file_bytes", length, limits.max_file_bytes);
  io::MemoryBudget budget(limits, packed.size());
  auto contents = budget.vector<std::byte>("wrapper", length);
  container::unpack(packed, contents, limits);
  OutputFile out(target, options.output, options.work.cancel);
  out.write(contents);
  stop_if_cancelled(options.work.cancel);
  out.commit();
  if (options.work.progress) options.work.progress(packed.size(), packed.size());
  return {.codec = Codec::zstd,
          .frames = 1,
          .input_bytes = packed.size(),
          .output_bytes = length,
          .seconds = watch.seconds()};
}

}  // namespace

WrapResult decompress_checkpoint(const std::filesystem::path& source,
                                 const std::filesystem::path& target,
                                 const DecompressOptions& options) {
  return with_path(source.native(), [&] {
    const io::UniqueFd fd = io::open_for_reading(source);
    if (container::is_packed(fd.get(), source))
      return unpack_file(fd.get(), source, target, options);
    return Decompression(source, target, options).run(target);
  });
}

std::optional<WrapperInfo> read_wrapper(const std::filesystem::path& path,
                                        const ReadLimits& limits) {
  return container::wrapper_of(io::open_for_reading(path).get(), path, limits);
}

std::optional<WrapperInfo> container::wrapper_of(int fd, const std::filesystem::path& path,
                                                 const ReadLimits& limits) {
  const std::uint64_t size = io::file_size(fd, path);
  if (is_packed(fd, path)) {
    return with_path(path.native(), [&] {
      const std::uint64_t length = packed_contents_length(read_packed(fd, path));
      return WrapperInfo{.packed = true, .content_bytes = length};
    });
  }
  const auto front = find_wrapper(fd, path, size);
  if (!front) return std::nullopt;
  return with_path(path.native(), [&] {
    WrapperInfo info{.codec = front->codec};
    if (const auto table = SeekTable::read({fd, path, size, front->codec}, limits)) {
      info.has_seek_table = true;
      info.frames = table->size();
      info.content_bytes = table->content_bytes();
    }
    return info;
  });
}

}  // namespace thalia
