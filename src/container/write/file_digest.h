// SHA-256 of a whole file while it is written, and the line that sha256sum checks.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <thread>

#include "container/write/file_pieces.h"
#include "integrity/sha256.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::container {

/// One thread follows the save in file order, because SHA-256 has to: one more pass over memory.
/// Pieces that are in the file already are read back.
class FileDigest {
 public:
  /// @param image,prefix,header borrowed; the prefix is what the file has before the image; the
  /// header's bytes are final, whatever the image has in their place. @param end of the extents.
  FileDigest(const FilePieces& image, ByteSpan prefix, ByteSpan header, std::uint64_t end,
             std::uint64_t extent_bytes);
  ~FileDigest();
  FileDigest(const FileDigest&) = delete;
  FileDigest& operator=(const FileDigest&) = delete;

  /// The image's bytes of that extent are final. Any thread, once an extent.
  void extent_is_final(std::uint64_t extent) noexcept;
  /// When all extents are final: waits for the thread, and the image may change again.
  /// @throws IoError.
  void finish_extents();
  /// After that, with the image complete: what lies after the extents, up to `length`.
  /// @throws IoError.
  Digest256 finish(std::uint64_t length);

 private:
  void follow();
  void hash(std::uint64_t begin, std::uint64_t end);

  const FilePieces& image_;
  const ByteSpan prefix_;
  const ByteSpan header_;
  const std::uint64_t end_;
  const std::uint64_t extent_bytes_;
  const std::uint64_t extents_;
  const std::unique_ptr<std::atomic<bool>[]> final_;  ///< by extent
  std::atomic<bool> stopped_ = false;
  std::exception_ptr error_;
  integrity::Sha256 hasher_;
  std::jthread thread_;  ///< destroyed first
};

/// Before a save, not after it. @throws IoError (ENAMETOOLONG) if PATH.sha256 is no name;
/// UsageError (exists) if it is there and is not to be replaced.
void check_sha256_name(const std::filesystem::path& path, const OutputOptions& output);

/// Before a file takes the place of another one: removes PATH.sha256, which belongs to the old one,
/// and syncs the folder as the durability says. So no crash leaves a digest beside a file that it
/// is not of. @throws IoError.
void remove_sha256_file(const std::filesystem::path& path, const OutputOptions& output);

/// Writes PATH.sha256 beside a file, which `sha256sum -c` takes in its folder. @throws IoError.
void write_sha256_file(const std::filesystem::path& path, const Digest256& digest,
                       const OutputOptions& output);

}  // namespace thalia::container
