// Every number is compared with the extent around it before it is used. Whatever the archive says,
// all members together have no more bytes than the file, so inflating all of them gives at most a
// fixed multiple of it: members that share bytes, by which small archives claim to be huge, are
// refused.
#include "formats/zip/directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "format/foreign_file.h"
#include "formats/zip/deflate.h"
#include "formats/zip/records.h"
#include "integrity/crc32.h"
#include "io/memory/allocation_limit.h"
#include "thalia/text.h"
#include "thalia/types.h"

namespace thalia::formats {
namespace {

// The end of a zip archive, which says where its directory lies.
//
// Looks for the record from the end of the file on, because a comment of up to 65,535 bytes may
// follow it. What the record and the zip64 record both say has to agree: a reader that trusts
// the one must see the same archive as a reader that trusts the other.

struct ZipEnd {
  std::uint64_t directory_offset = 0;
  std::uint64_t directory_bytes = 0;
  std::uint64_t members = 0;
  std::string_view comment;  ///< in the file
  bool zip64 = false;        ///< there is a zip64 record
};

}  // namespace
}  // namespace thalia::formats

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

// Numbers that the short record could hold are in both.
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
namespace {

/// The directory lies in the file and ends where the record of the end begins. @throws FormatError;
/// UnsupportedError for an archive on several disks.
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

}  // namespace
}  // namespace thalia::formats

namespace thalia::formats::zip {
namespace {

constexpr std::size_t kVisitPiece = std::size_t{1} << 18;

// From each header to the end of its data.
void check_apart(const std::vector<ZipMember>& members) {
  std::vector<std::size_t> order(members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return members[a].header_offset < members[b].header_offset;
  });
  std::uint64_t least = 0;
  for (const std::size_t i : order) {
    const ZipMember& member = members[i];
    if (member.header_offset < least) {
      throw FormatError(ErrorCode::out_of_bounds, "two members share bytes of the file",
                        {.section = "zip member",
                         .field = "header_offset",
                         .tensor = printable(member.name),
                         .offset = member.header_offset,
                         .value = std::to_string(member.header_offset),
                         .bound = fmt::format("at least {}", least)});
    }
    least = member.offset + member.stored_bytes;
  }
}

}  // namespace
}  // namespace thalia::formats::zip

namespace thalia::formats {

ZipDirectory ZipDirectory::parse(ByteSpan file, const ReadLimits& limits) {
  io::check_file_bytes("zip", file.size(), limits);
  const ZipEnd end = find_zip_end(file);
  // A member's record here, its place in the map, and the name, which the directory holds.
  constexpr std::uint64_t kMemberBytes = sizeof(ZipMember) + 8 * sizeof(void*);
  io::MemoryBudget budget(limits, file.size());
  budget.take("zip", end.members, kMemberBytes);
  budget.take("zip", end.directory_bytes);
  ZipDirectory zip;
  zip.file_ = file;
  zip.comment_ = end.comment;
  zip.has_zip64_end_ = end.zip64;
  zip.members_.reserve(end.members);
  std::uint64_t offset = end.directory_offset;
  const std::uint64_t directory_end = end.directory_offset + end.directory_bytes;
  for (std::uint64_t i = 0; i < end.members; ++i)
    zip.members_.push_back(read_zip_member(file, offset, directory_end, end.directory_offset));
  if (offset != directory_end) {
    fail_field(ErrorCode::inconsistent, "end record", "directory_bytes", offset,
               fmt::format("{} bytes after the last member", directory_end - offset), "none");
  }
  for (std::size_t i = 0; i < zip.members_.size(); ++i) {
    if (!zip.places_.emplace(zip.members_[i].name, i).second) {
      throw FormatError(
          ErrorCode::bad_name, "two members have one name",
          {.section = "zip member", .field = "name", .value = printable(zip.members_[i].name)});
    }
  }
  zip::check_apart(zip.members_);
  return zip;
}

const ZipMember* ZipDirectory::find(std::string_view name) const noexcept {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &members_[found->second];
}

ByteSpan ZipDirectory::stored(const ZipMember& member) const {
  if (member.method != ZipMethod::stored)
    fail_argument(ErrorCode::bad_argument, "member", printable(member.name), "a stored member");
  return stored_bytes(member);
}

std::vector<std::byte> ZipDirectory::read(const ZipMember& member, io::MemoryBudget& budget) const {
  auto raw = budget.vector<std::byte>("zip member", member.raw_bytes);
  if (member.method == ZipMethod::stored) {
    const ByteSpan bytes = stored_bytes(member);
    std::copy(bytes.begin(), bytes.end(), raw.begin());
  } else {
    InflateStream stream(stored_bytes(member));
    stream.read(raw);
    stream.finish();
  }
  compare_crc(member, integrity::crc32(raw));
  return raw;
}

std::vector<std::byte> ZipDirectory::read_start(const ZipMember& member, std::size_t count) const {
  std::vector<std::byte> start(std::min<std::uint64_t>(count, member.raw_bytes));
  if (member.method == ZipMethod::stored) {
    std::copy_n(stored_bytes(member).begin(), start.size(), start.begin());
  } else {
    InflateStream(stored_bytes(member)).read(start);
  }
  return start;
}

void ZipDirectory::visit(const ZipMember& member, const PieceSink& sink) const {
  std::uint32_t crc = 0;
  if (member.method == ZipMethod::stored) {
    // In pieces that are still in the processor's caches when the sink reads them.
    for (ByteSpan left = stored_bytes(member); !left.empty();) {
      const ByteSpan piece = left.first(std::min(left.size(), zip::kVisitPiece));
      crc = integrity::crc32(piece, crc);
      sink(piece);
      left = left.subspan(piece.size());
    }
    return compare_crc(member, crc);
  }
  InflateStream stream(stored_bytes(member));
  std::vector<std::byte> piece(std::min<std::uint64_t>(zip::kVisitPiece, member.raw_bytes));
  for (std::uint64_t left = member.raw_bytes; left != 0;) {
    const auto part = MutableByteSpan(piece).first(std::min<std::uint64_t>(left, piece.size()));
    stream.read(part);
    crc = integrity::crc32(part, crc);
    sink(part);
    left -= part.size();
  }
  stream.finish();
  compare_crc(member, crc);
}

void ZipDirectory::check_crc(const ZipMember& member) const {
  if (member.method != ZipMethod::stored) return visit(member, [](ByteSpan) {});
  if (has_checksums_) compare_crc(member, integrity::crc32_of_all(stored_bytes(member), 0));
}

}  // namespace thalia::formats
