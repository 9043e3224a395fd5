// Looks for the record from the end of the file on, because a comment of up to 65,535 bytes may
// stand behind it. What the record and the zip64 record both say has to agree: a reader that trusts
// the one must see the same archive as a reader that trusts the other.
#include "formats/zip/end.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "base/fail.h"
#include "format/foreign_file.h"
#include "formats/zip/records.h"

namespace thalia::formats::zip {
namespace {

constexpr std::size_t kLongestComment = 65'535;

template <typename Record>
Record zip_end_part(ByteSpan file, std::uint64_t offset) {
  Record record;
  std::memcpy(&record, file.data() + offset, sizeof(record));
  return record;
}

// The last record whose comment ends where the file does.
std::optional<std::size_t> end_record_offset(ByteSpan file) {
  if (file.size() < sizeof(EndRecord)) return std::nullopt;
  const std::size_t last = file.size() - sizeof(EndRecord);
  const std::size_t first = last - std::min(last, kLongestComment);
  for (std::size_t offset = last + 1; offset-- > first;) {
    if (file[offset] != std::byte{'P'}) continue;
    const auto record = zip_end_part<EndRecord>(file, offset);
    if (record.signature == kEndSignature && record.comment_length == last - offset) return offset;
  }
  return std::nullopt;
}

[[noreturn]] void fail_disks(std::uint64_t offset, std::uint64_t value) {
  throw UnsupportedError(ErrorCode::unsupported_feature, "the archive lies on several disks",
                         {.section = "end record",
                          .field = "disk",
                          .offset = offset,
                          .value = std::to_string(value),
                          .bound = "0"});
}

// Numbers that the short record could hold stand in both.
void agree(std::string_view field, std::uint64_t offset, std::uint64_t in_short,
           std::uint64_t in_zip64, std::uint64_t saturated) {
  if (in_short == in_zip64 || in_short == saturated) return;
  fail_field(ErrorCode::inconsistent, "zip64 end record", field, offset, std::to_string(in_zip64),
             fmt::format("{}, as the end record says", static_cast<std::uint64_t>(in_short)));
}

// @return where the zip64 record begins, and its numbers in `end`.
std::uint64_t read_zip64(ByteSpan file, std::uint64_t locator_offset, const EndRecord& record,
                         ZipEnd& end) {
  const auto locator = zip_end_part<End64Locator>(file, locator_offset);
  if (locator.disk != 0) fail_disks(locator_offset, locator.disk);
  if (locator.disks > 1) fail_disks(locator_offset, locator.disks);
  const std::uint64_t offset = locator.record_offset;
  if (locator_offset < sizeof(End64Record) || offset > locator_offset - sizeof(End64Record)) {
    fail_field(ErrorCode::out_of_bounds, "zip64 locator", "record_offset", locator_offset + 8,
               std::to_string(offset),
               fmt::format("at least {} before {}", sizeof(End64Record), locator_offset));
  }
  const auto wide = zip_end_part<End64Record>(file, offset);
  if (wide.signature != kEnd64Signature)
    fail_field(ErrorCode::bad_magic, "zip64 end record", "signature", offset, "other bytes",
               "PK and the bytes 6, 6");
  const std::uint64_t behind = locator_offset - offset - 12;
  if (wide.record_bytes != behind) {
    fail_field(ErrorCode::inconsistent, "zip64 end record", "record_bytes", offset + 4,
               std::to_string(wide.record_bytes), std::to_string(behind));
  }
  if (wide.disk != 0) fail_disks(offset, wide.disk);
  if (wide.directory_disk != 0) fail_disks(offset, wide.directory_disk);
  if (wide.members_on_disk != wide.members) fail_disks(offset, wide.members_on_disk);
  agree("members", offset, record.members, wide.members, kCountInZip64);
  agree("directory_bytes", offset, record.directory_bytes, wide.directory_bytes, kInZip64);
  agree("directory_offset", offset, record.directory_offset, wide.directory_offset, kInZip64);
  end.members = wide.members;
  end.directory_bytes = wide.directory_bytes;
  end.directory_offset = wide.directory_offset;
  end.zip64 = true;
  return offset;
}

}  // namespace
}  // namespace thalia::formats::zip

namespace thalia::formats {

ZipEnd find_zip_end(ByteSpan file) {
  const auto found = zip::end_record_offset(file);
  if (!found) {
    throw FormatError(ErrorCode::truncated,
                      file.empty() ? format::kEmptyFile
                                   : "no zip archive ends here: it is cut off, or something else",
                      {.section = "end record", .value = fmt::format("{} bytes", file.size())});
  }
  const std::uint64_t offset = *found;
  const auto record = zip::zip_end_part<zip::EndRecord>(file, offset);
  ZipEnd end{.directory_offset = record.directory_offset,
             .directory_bytes = record.directory_bytes,
             .members = record.members};
  end.comment = {reinterpret_cast<const char*>(file.data()) + offset + sizeof(zip::EndRecord),
                 record.comment_length};
  const auto check_disk = [&](std::uint16_t disk) {
    if (disk != 0 && disk != zip::kCountInZip64) zip::fail_disks(offset, disk);
  };
  check_disk(record.disk);
  check_disk(record.directory_disk);
  if (record.members_on_disk != record.members) zip::fail_disks(offset, record.members_on_disk);

  std::uint64_t directory_end = offset;
  if (offset >= sizeof(zip::End64Locator)) {
    const std::uint64_t locator = offset - sizeof(zip::End64Locator);
    if (zip::zip_end_part<format::le32>(file, locator) == zip::kLocatorSignature)
      directory_end = zip::read_zip64(file, locator, record, end);
  }
  if (end.directory_bytes > directory_end ||
      end.directory_offset != directory_end - end.directory_bytes) {
    fail_field(ErrorCode::inconsistent, "end record", "directory_offset", offset,
               fmt::format("{} and {} bytes", end.directory_offset, end.directory_bytes),
               fmt::format("an end at {}", directory_end));
  }
  if (end.members > end.directory_bytes / sizeof(zip::CentralHeader)) {
    fail_field(ErrorCode::out_of_bounds, "end record", "members", offset,
               std::to_string(end.members),
               std::to_string(end.directory_bytes / sizeof(zip::CentralHeader)));
  }
  return end;
}

}  // namespace thalia::formats
