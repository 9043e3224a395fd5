// Compresses a file as frames. The target is committed as a whole after the seek table, so a
// failure or a stop leaves nothing behind. The source may be any file; one that becomes shorter
// meanwhile is an error. docs/format/format.md, "Wrappers".
#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "codec/chunk/codec.h"
#include "container/wrap/frame_memory.h"
#include "container/wrap/frame_writer.h"
#include "container/wrap/packed.h"
#include "container/wrap/unwrap.h"
#include "format/header.h"
#include "format/v01.h"
#include "io/file/posix_file.h"
#include "thalia/compress.h"
#include "thalia/files.h"

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
    check_option("frame_bytes", options.frame_bytes, 4096, container::kMostFrameBytes);
    if (frame_bytes_ > container::kMostFrameBytes) {
      throw UsageError(ErrorCode::bad_argument, "a file of version 0.1 has to be one frame",
                       {.path = source.string(),
                        .value = fmt::format("{} bytes", size_),
                        .bound = fmt::format("at most {}", container::kMostFrameBytes)});
    }
    container::check_not_the_source(source, target);
    if (container::is_packed(fd_.get(), source)) {
      throw UnsupportedError(ErrorCode::unsupported_feature,
                             "a packed delta is not wrapped, decompress it first",
                             {.path = source.string(), .section = "wrapper"});
    }
  }

  WrapResult run(const std::filesystem::path& target) {
    const Stopwatch watch;
    OutputFile out(target, options_.output, options_.work.cancel);
    const std::uint64_t frames = container::write_frames(
        {.size = size_,
         .read = [this](std::uint64_t offset,
                        MutableByteSpan bytes) { io::pread_all(fd_.get(), offset, bytes, path_); }},
        {.codec = codec_, .level = level_, .frame_bytes = frame_bytes_, .with_table = !alone_},
        options_.work, out);
    stop_if_cancelled(options_.work.cancel);
    out.commit();
    return {.codec = codec_,
            .frames = frames,
            .input_bytes = size_,
            .output_bytes = out.size(),
            .seconds = watch.seconds()};
  }

 private:
  // Readers of version 0.1 take one frame, with nothing after it but a checksum:
  // docs/format/v01.md.
  bool is_version_0_1() const {
    format::V01FileHeader header{};
    if (size_ < sizeof header) return false;
    io::pread_all(fd_.get(), 0, std::as_writable_bytes(std::span(&header, 1)), path_);
    return std::memcmp(header.magic, format::kMagic, sizeof header.magic) == 0 &&
           header.major_version == 0;
  }

  const CompressOptions& options_;
  Codec codec_;
  int level_;
  const std::filesystem::path& path_;
  io::UniqueFd fd_;
  std::uint64_t size_;
  bool alone_;  ///< all of it is one frame, without a table
  std::uint64_t frame_bytes_;
};

}  // namespace

WrapResult compress_checkpoint(const std::filesystem::path& source,
                               const std::filesystem::path& target,
                               const CompressOptions& options) {
  return WholeFile(source, target, options).run(target);
}

}  // namespace thalia
