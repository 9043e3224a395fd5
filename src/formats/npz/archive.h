// The arrays of an open .npz file.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/npz/array.h"
#include "formats/source/npy_header.h"
#include "formats/source/piece_sink.h"
#include "formats/zip/directory.h"
#include "thalia/storage.h"

namespace thalia::formats::npz {

/// What members of arrays are called after the array's name.
inline constexpr std::string_view kArraySuffix = ".npy";
/// What numpy.load calls the array of a member, or a file.
std::string array_name(std::string_view member);

/// Errors name the array, and no path. Immutable but for what was compared; any number of threads.
class NpzArchive {
 public:
  /// @throws FormatError naming field and bound; UnsupportedError for pickled objects, texts,
  /// dates, records of several fields, ranks above 8; CompressionError.
  NpzArchive(StoredBytes bytes, const ReadOptions& options);

  const std::vector<NpyArray>& arrays() const noexcept { return arrays_; }
  const NpyHeader& header(std::size_t i) const noexcept { return headers_[i]; }
  const ZipMember& member(std::size_t i) const noexcept { return zip_.members()[members_[i]]; }
  /// The header as it is in the file, or in the deflated stream.
  std::vector<std::byte> header_text(std::size_t i) const;
  const std::vector<std::string>& others() const noexcept { return others_; }
  std::string_view comment() const noexcept { return zip_.comment(); }
  std::uint64_t file_bytes() const noexcept { return bytes_.bytes.size(); }

  /// Inflated where the array is deflated. The first read of an array compares the CRC-32 of its
  /// member, unless the options said Verification::off; that of a deflated one is compared at every
  /// read. @throws IntegrityError; FormatError (bad_compression, limit_exceeded).
  Tensor read(std::size_t i) const;
  /// Hands on the tensor's bytes in pieces, then compares the CRC-32 of the member.
  void visit(std::size_t i, const PieceSink& sink) const;
  /// Compares the CRC-32, whatever the options say.
  void check(std::size_t i) const;

 private:
  void add(std::size_t member);

  StoredBytes bytes_;
  ReadOptions options_;
  ZipDirectory zip_;
  std::vector<NpyArray> arrays_;
  std::vector<NpyHeader> headers_;    ///< of each array
  std::vector<std::size_t> members_;  ///< of each array, its place in the archive
  std::vector<std::string> others_;
  mutable std::vector<std::atomic<bool>> compared_;
};

}  // namespace thalia::formats::npz
