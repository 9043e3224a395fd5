// Writes zip archives as Python's zipfile and as torch.save do. Equal input gives equal bytes: the
// records say no time of day.
//
//   ZipWriter zip(out, kPythonZip);
//   zip.begin("w.npy", bytes.size());
//   zip.write(bytes);
//   zip.end();
//   zip.finish();
//   out.commit();
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "formats/zip/deflate.h"
#include "formats/zip/directory.h"
#include "thalia/files.h"
#include "thalia/types.h"

namespace thalia::formats {

/// Where writers differ. Readers take each.
struct ZipStyle {
  std::uint16_t made_by = 0;
  std::uint16_t version_needed = 0;
  std::uint16_t date = 0;
  std::uint32_t external_attributes = 0;
  bool always_utf8 = false;  ///< the flag of names in UTF-8 also if they are ASCII
  /// CRC and sizes follow the data; else the header before it gets them afterwards.
  bool descriptors = false;
  /// The least number that goes into zip64 fields.
  std::uint64_t least_wide = 0xffffffff;
  bool always_zip64_end = false;
  std::uint16_t end64_made_by = 45;
  /// Headers before data have zip64 fields in place of sizes, and ask for version 45; else the
  /// sizes are there, too, and are taken where they fit.
  bool strict_zip64 = true;
  /// Members with zip64 fields ask for version 45 of their readers.
  bool marks_zip64 = true;
};

/// As zipfile of Python 3.11.4 and later writes to a new file: made on Unix, 1 January 1980.
inline constexpr ZipStyle kPythonZip{.made_by = 0x0314,
                                     .version_needed = 20,
                                     .date = 0x0021,
                                     .external_attributes = 0x01800000,
                                     .least_wide = 0x80000000};
/// As zipfile of Python up to 3.11.3.
inline constexpr ZipStyle kOldPythonZip{.made_by = 0x0314,
                                        .version_needed = 20,
                                        .date = 0x0021,
                                        .external_attributes = 0x01800000,
                                        .least_wide = 0x80000000,
                                        .strict_zip64 = false};
/// As the PyTorchStreamWriter of torch.save.
inline constexpr ZipStyle kPyTorchZip{.always_utf8 = true,
                                      .descriptors = true,
                                      .always_zip64_end = true,
                                      .end64_made_by = 0x031e,
                                      .marks_zip64 = false};

struct ZipNewMember {
  /// The data begins at a multiple of it, after an extra field "FB" filled with Z; 0: anywhere,
  /// and without that field. Up to 32,768.
  std::uint32_t alignment = 0;
  bool deflated = false;
  int level = -1;  ///< of deflate: 1 to 9, or -1 for zlib's default
  /// Zip64 fields before the data whatever the size, as numpy.savez has them.
  bool force_zip64 = false;
};

/// Externally synchronised. Anybody who made the output commits it.
class ZipWriter {
 public:
  /// The archive begins at the start of the output, which holds nothing yet.
  ZipWriter(OutputFile& out, const ZipStyle& style);

  /// `raw_bytes`: how many will be written. @throws UsageError (bad_argument) for a name that is
  /// empty, no UTF-8 or longer than 65,535 bytes, or has a zero byte, or for an
  /// alignment; (duplicate); IoError, CancelledError.
  void begin(std::string_view name, std::uint64_t raw_bytes, const ZipNewMember& options = {});
  void write(ByteSpan piece);
  /// @throws UsageError (size_mismatch) where another number of bytes was written.
  void end();
  /// Adds a member that is whole in memory.
  void add(std::string_view name, ByteSpan bytes, const ZipNewMember& options = {});
  /// Writes the directory, and is the last call. @return bytes of the archive.
  std::uint64_t finish();

 private:
  struct Open {
    ZipNewMember options;
    std::uint64_t raw_bytes = 0;  ///< to come
    std::uint64_t written = 0;
    bool wide = false;  ///< zip64 fields before the data
  };

  bool is_wide(std::uint64_t number) const noexcept { return number >= style_.least_wide; }
  std::string local_head(const ZipMember& member) const;
  void write_directory_entry(const ZipMember& member);

  OutputFile& out_;
  ZipStyle style_;
  std::vector<ZipMember> members_;
  std::unordered_set<std::string> names_;
  Open open_;
  bool is_open_ = false;
  std::optional<DeflateStream> deflate_;
};

}  // namespace thalia::formats
