// The members of a zip archive: what numpy.savez and torch.save put arrays in. docs/format/npz.md,
// "Zip archives".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/source/piece_sink.h"
#include "formats/zip/member.h"
#include "io/memory/allocation_limit.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::formats {

/// The directory of a file in memory, which it borrows. After parse() each member's bytes lie in
/// the file, no two members share bytes, names are different, and no deflated member claims more
/// than its bytes can hold. Immutable; any number of threads.
class ZipDirectory {
 public:
  /// @throws FormatError; UnsupportedError for encryption, several disks, other methods than stored
  /// and deflated, names in another character set than ASCII and UTF-8.
  static ZipDirectory parse(ByteSpan file, const ReadLimits& limits = {});
  ZipDirectory(ZipDirectory&&) = default;
  ZipDirectory& operator=(ZipDirectory&&) = default;
  /// From now on no CRC-32 is compared: of an archive whose writer made none.
  void ignore_checksums() noexcept { has_checksums_ = false; }
  bool has_checksums() const noexcept { return has_checksums_; }

  /// In the order of the directory, which need not be that of the file.
  const std::vector<ZipMember>& members() const noexcept { return members_; }
  /// nullptr if there is none. The name is compared byte by byte.
  const ZipMember* find(std::string_view name) const noexcept;
  std::string_view comment() const noexcept { return comment_; }
  /// Whether the end of the archive has a zip64 record.
  bool has_zip64_end() const noexcept { return has_zip64_end_; }

  /// As they lie in the file, still deflated where the member is.
  ByteSpan stored_bytes(const ZipMember& member) const noexcept {
    return file_.subspan(member.offset, member.stored_bytes);
  }
  /// The bytes of a stored member, nothing copied and no checksum compared. @throws UsageError
  /// (bad_argument) if it is deflated.
  ByteSpan stored(const ZipMember& member) const;
  /// The raw bytes of any member, whose CRC-32 is compared. @throws CompressionError,
  /// IntegrityError; FormatError (limit_exceeded).
  std::vector<std::byte> read(const ZipMember& member, io::MemoryBudget& budget) const;
  /// The same as a call of its own.
  std::vector<std::byte> read(const ZipMember& member, const ReadLimits& limits = {}) const {
    io::MemoryBudget budget(limits, member.stored_bytes);
    return read(member, budget);
  }
  /// The first raw bytes of a member, as many as there are of `count`; no checksum is compared.
  /// @throws CompressionError.
  std::vector<std::byte> read_start(const ZipMember& member, std::size_t count) const;
  /// Hands on the raw bytes in pieces, then compares the CRC-32. @throws as read(), but for limits.
  void visit(const ZipMember& member, const PieceSink& sink) const;
  /// On all cores, where the member is large and stored. @throws as visit().
  void check_crc(const ZipMember& member) const;

 private:
  ZipDirectory() = default;
  void compare_crc(const ZipMember& member, std::uint32_t actual) const {
    if (has_checksums_) check_zip_crc(member, actual);
  }

  ByteSpan file_;
  std::vector<ZipMember> members_;
  std::unordered_map<std::string_view, std::size_t> places_;
  std::string_view comment_;
  bool has_zip64_end_ = false;
  bool has_checksums_ = true;
};

}  // namespace thalia::formats
