// Every number is compared with the extent around it before it is used. Whatever the archive says,
// all members together have no more bytes than the file, so inflating all of them gives at most a
// fixed multiple of it: members that share bytes, by which small archives claim to be huge, are
// refused.
#include "formats/zip/directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/fail.h"
#include "formats/zip/deflate.h"
#include "formats/zip/end.h"
#include "integrity/crc32.h"
#include "io/memory/allocation_limit.h"
#include "thalia/text.h"

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
               fmt::format("{} bytes behind the last member", directory_end - offset), "none");
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
