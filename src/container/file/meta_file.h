// The extents of a side file, at the addresses that they have in the file they came from.
// docs/format/format.md, "Side files".
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "format/extent.h"
#include "io/file/file_bytes.h"
#include "io/file/memory_file.h"
#include "thalia/options.h"

namespace thalia::container {

/// True of the first bytes of a side file.
bool begins_side_file(ByteSpan start) noexcept;

/// All of a side file is read and checked when it is opened. Immutable; any number of threads.
class MetaFile final : public io::FileBytes {
 public:
  /// @param file the side file, read through its descriptor. @throws IoError; FormatError,
  /// IntegrityError, UnsupportedError (another version).
  static std::shared_ptr<const MetaFile> open(const io::FileBytes& file, const ReadLimits& limits);

  io::Backing backing() const noexcept override { return io::Backing::partial; }
  void populate(std::uint64_t offset, std::uint64_t length) const override { fill(offset, length); }
  void advise(std::uint64_t, std::uint64_t, io::Advice) const noexcept override {}
  std::uint64_t resident_bytes() const override { return resident_; }
  std::uint64_t disk_bytes() const noexcept override { return file_bytes_; }
  /// The extents of the source, ascending and apart.
  const std::vector<format::Extent>& extents() const noexcept { return extents_; }

 private:
  MetaFile(std::filesystem::path path, io::UniqueFd memory)
      : FileBytes(Access::copied, std::move(path), std::move(memory)) {}
  // Nothing is left to fill. @throws UnsupportedError for bytes that are not there.
  void fill(std::uint64_t offset, std::uint64_t length) const override;

  std::vector<format::Extent> extents_;  ///< ascending; those that meet are one
  std::optional<io::MemoryMapping> memory_;
  std::uint64_t resident_ = 0;
  std::uint64_t file_bytes_ = 0;
};

}  // namespace thalia::container
