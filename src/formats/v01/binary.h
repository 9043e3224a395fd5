// Reading and writing 0.1 files piece by piece, as the source specification's BinaryWriter and
// BinaryReader do. Whole files: thalia/formats/v01.h. docs/format/v01.md, "Version 0.1 files".
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "format/v01.h"
#include "thalia/detail/held.h"
#include "thalia/formats/v01.h"
#include "thalia/options.h"
#include "thalia/state/value.h"

namespace thalia {

/// Where a piece of a 0.1 file lies in its body.
struct V01Extent {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  friend bool operator==(const V01Extent&, const V01Extent&) = default;
};

struct V01IndexEntry {
  std::string name;
  V01Extent json;
};

/// Pieces are in the file in the order of the calls, after 256 bytes for the header. Nothing is
/// at the path before finalize(). Externally synchronised.
class BinaryWriter {
 public:
  /// @throws IoError.
  explicit BinaryWriter(const std::filesystem::path& path, const OutputOptions& output = {});
  ~BinaryWriter();
  BinaryWriter(BinaryWriter&&) noexcept;
  BinaryWriter& operator=(BinaryWriter&&) noexcept;

  /// What finalize() puts in front, as it is: offsets and lengths are the caller's. The last call
  /// counts.
  void write_header(const format::V01FileHeader& header);
  /// @param sparse also if it is dense, has more than 100 elements, and more than 90 % of them
  /// are 0, as the original program chooses. @throws IoError; UnsupportedError as write_v01().
  V01Extent write_tensor(const Tensor& tensor, bool sparse = false);
  /// The tensors of a region's tree, then its text, whose extent this gives. @throws as
  /// write_tensor().
  V01Extent write_json(const Value& data);
  /// The region index. @throws IoError; UnsupportedError for a name.
  V01Extent write_index(std::span<const V01IndexEntry> entries);
  /// Header and checksum; then the file is in place. @return the checksum. @throws IoError;
  /// UsageError (wrong_state) without a header, or the second time, as all other calls then do.
  Digest256 finalize();

 private:
  struct Impl;
  Impl& open();
  detail::Owned<Impl> impl_;
};

/// A file, or what is in its frame. What is read is checked against the body's end, and against
/// the checksum only on request. Externally synchronised. One that was moved from throws UsageError
/// (wrong_state), as a writer does.
class BinaryReader {
 public:
  /// @throws IoError; FormatError where a frame is broken or the file has no room for a checksum.
  explicit BinaryReader(const std::filesystem::path& path, const ReadOptions& options = {});
  ~BinaryReader();
  BinaryReader(BinaryReader&&) noexcept;
  BinaryReader& operator=(BinaryReader&&) noexcept;

  /// @throws FormatError; UnsupportedError (unsupported_version).
  format::V01FileHeader read_header() const;
  /// @throws as read_header().
  std::vector<V01IndexEntry> read_index() const;
  /// @throws FormatError.
  Tensor read_tensor(std::uint64_t offset) const;
  /// A text as it is there: places of tensors are objects. @throws FormatError.
  Value read_json(std::uint64_t offset, std::uint64_t length) const;
  /// Reads the whole file.
  bool validate_checksum() const;

 private:
  struct Impl;
  detail::Owned<Impl> impl_;
};

}  // namespace thalia
