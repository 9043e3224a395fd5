// Whole files in compressed frames: .thalia.zst and .thalia.lz4, which `zstd -d` and `lz4 -d` open,
// and which Reader::open() reads without unpacking them to the disk. docs/format/format.md,
// "Wrappers".
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "thalia/options.h"

namespace thalia {

struct CompressOptions {
  /// zstd or lz4; without a codec, the one that the target's name ends in: .zst or .lz4.
  /// chunk_bytes does not count, frames have frame_bytes.
  Compression compression{};
  /// Bytes of the source in a frame, 4 KiB to 1 GiB: the least that a reader decodes.
  std::uint64_t frame_bytes = 4 << 20;
  OutputOptions output{};
  /// All but memory_bytes, as memory follows frame_bytes. Progress is in bytes of the source.
  Work work{};
};

struct DecompressOptions {
  /// Its max_file_bytes limits what is written, max_allocation_bytes the memory for a seek table.
  InputOptions input{};
  OutputOptions output{};
  /// All but memory_bytes; a file without seek table needs one thread. Progress is in bytes of the
  /// source.
  Work work{};
};

struct WrapResult {
  Codec codec = Codec::zstd;
  std::uint64_t frames = 0;  ///< of the compressed file, skippable ones not counted
  std::uint64_t input_bytes = 0;
  std::uint64_t output_bytes = 0;
  double seconds = 0;
};

/// Writes the bytes of `source`, any file but a packed delta, as frames with a seek table, and puts
/// them at `target` as a save does: whole or not at all. A file of version 0.1 becomes one frame
/// without a table, as its readers expect it. Takes memory for a few frames a thread, all together
/// at most 512 MiB, or what one frame takes.
///
/// @throws IoError; UsageError (bad_argument) for an option out of range, a target whose name tells
/// no codec, a target that is the source, and a source of version 0.1 above 1 GiB; UnsupportedError
/// for a packed delta; CancelledError.
WrapResult compress_checkpoint(const std::filesystem::path& source,
                               const std::filesystem::path& target,
                               const CompressOptions& options = {});

/// Writes what the frames of `source` hold to `target`, exactly, whole or not at all; of a packed
/// delta, the plain one. With a seek table frames are decoded on all threads; without one, from the
/// front. Takes no more memory than compress_checkpoint(), whatever the file says.
///
/// @throws FormatError: (bad_magic) for a file that begins with no frame, (bad_value, truncated)
/// for damaged frames and seek tables and for bytes after the frames, (limit_exceeded); otherwise
/// as compress_checkpoint().
WrapResult decompress_checkpoint(const std::filesystem::path& source,
                                 const std::filesystem::path& target,
                                 const DecompressOptions& options = {});

struct WrapperInfo {
  Codec codec = Codec::zstd;
  bool packed = false;  ///< a packed delta, docs/format/packed.md, which has no frames
  bool has_seek_table = false;
  std::uint64_t frames = 0;         ///< 0 without a seek table
  std::uint64_t content_bytes = 0;  ///< of all frames, or of the delta; 0 without a seek table
};

/// What a file says of its frames, without decoding one; nullopt for a file that begins with none.
/// @throws IoError, FormatError for a broken seek table or packed head, UnsupportedError for a
/// packed delta of a version that is not known.
std::optional<WrapperInfo> read_wrapper(const std::filesystem::path& path,
                                        const ReadLimits& limits = {});

}  // namespace thalia
