// Each extent is read to the offset that it has in the source, in address space for the whole
// source. So a side file is read by the code that reads plain files; pages between the extents are
// never touched and take no memory.
//
// The order of the checks: sizes in the header, before anything is allocated for them; the CRC of
// header and extents, before an extent is followed; the extents; last the closing checksum over all
// of it. What fill() lets pass was checked then, so a side file needs no blocks.
// docs/format/format.md, "Side files".
#include "container/file/meta_file.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "base/fail.h"
#include "format/constants.h"
#include "format/header.h"
#include "format/meta.h"
#include "format/overlay.h"
#include "integrity/crc32.h"
#include "integrity/sha256.h"
#include "io/file/posix_file.h"
#include "io/memory/allocation_limit.h"

namespace thalia::container {
namespace {

using format::Extent;
using format::MetaExtent;
using format::MetaHeader;

constexpr const char* kSection = "side_file";
// The most address space to reserve for a source, 16 TiB: far less than a process has, far more
// than a checkpoint needs.
constexpr std::uint64_t kMostSource = 1ull << 44;

MetaHeader read_header(const io::FileBytes& file) {
  const std::uint64_t size = file.bytes().size();
  constexpr std::uint64_t kLeast =
      sizeof(MetaHeader) + sizeof(MetaExtent) + format::kChecksumLength;
  if (size < kLeast) {
    fail_field(ErrorCode::truncated, kSection, "", 0, fmt::format("a file of {} bytes", size),
               fmt::format("at least {} bytes", kLeast));
  }
  MetaHeader header;
  io::pread_all(file.fd(), 0, std::as_writable_bytes(std::span(&header, 1)), file.path());
  if (header.meta_version != format::kMetaVersion) {
    throw UnsupportedError(ErrorCode::unsupported_version, "this version of side files",
                           {.section = kSection,
                            .field = "meta_version",
                            .offset = offsetof(MetaHeader, meta_version),
                            .value = std::to_string(header.meta_version),
                            .bound = std::to_string(format::kMetaVersion)});
  }
  if (header.meta_length != size) {
    fail_field(header.meta_length > size ? ErrorCode::truncated : ErrorCode::bad_value, kSection,
               "meta_length", offsetof(MetaHeader, meta_length), std::to_string(header.meta_length),
               fmt::format("{} bytes of file", size));
  }
  const std::uint64_t room = size - sizeof(MetaHeader) - format::kChecksumLength;
  if (header.extent_count == 0 || header.extent_count > room / sizeof(MetaExtent)) {
    fail_field(ErrorCode::out_of_bounds, kSection, "extent_count",
               offsetof(MetaHeader, extent_count), std::to_string(header.extent_count),
               fmt::format("1 to {}", room / sizeof(MetaExtent)));
  }
  if (header.source_length < sizeof(format::Header)) {
    fail_field(ErrorCode::out_of_bounds, kSection, "source_length",
               offsetof(MetaHeader, source_length), std::to_string(header.source_length),
               fmt::format("at least {}", sizeof(format::Header)));
  }
  return header;
}

void check_crc(const MetaHeader& header, ByteSpan extents) {
  MetaHeader zeroed = header;
  zeroed.meta_crc32 = 0;
  const std::uint32_t crc =
      integrity::crc32(extents, integrity::crc32(format::struct_bytes(zeroed)));
  if (crc == header.meta_crc32) return;
  throw IntegrityError(ErrorCode::checksum_mismatch, "header or extents are damaged",
                       {.section = kSection,
                        .field = "meta_crc32",
                        .offset = offsetof(MetaHeader, meta_crc32),
                        .value = fmt::format("{:#010x}", std::uint32_t{header.meta_crc32}),
                        .bound = fmt::format("{:#010x} as computed", crc)});
}

std::vector<Extent> checked_extents(const MetaHeader& header, std::span<const MetaExtent> extents) {
  std::vector<Extent> out;
  std::uint64_t end = 0;
  std::uint64_t sum = 0;  // of disjoint extents in source_length: it cannot wrap
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const Extent extent{extents[i].offset, extents[i].length};
    if (extent.offset < end || extent.length == 0 ||
        !format::lies_within(extent, 0, header.source_length)) {
      fail_field(ErrorCode::out_of_bounds, kSection, "extent",
                 sizeof header + i * sizeof(MetaExtent),
                 fmt::format("[{}, +{})", extent.offset, extent.length),
                 fmt::format("[{}, {}), not empty", end, std::uint64_t{header.source_length}));
    }
    end = extent.offset + extent.length;
    sum += extent.length;
    out.push_back(extent);
  }
  const std::uint64_t held =
      header.meta_length - sizeof header - extents.size_bytes() - format::kChecksumLength;
  if (sum != held) {
    fail_field(ErrorCode::inconsistent, kSection, "extent_count",
               offsetof(MetaHeader, extent_count), fmt::format("extents of {} bytes", sum),
               fmt::format("{} bytes between them and the closing checksum", held));
  }
  return out;
}

// A structure may begin in one extent and end in the next, which fill() would refuse.
void join_neighbours(std::vector<Extent>& extents) {
  std::size_t last = 0;
  for (std::size_t i = 1; i < extents.size(); ++i) {
    if (extents[last].offset + extents[last].length == extents[i].offset) {
      extents[last].length += extents[i].length;
    } else {
      extents[++last] = extents[i];
    }
  }
  extents.resize(last + 1);
}

}  // namespace

bool begins_side_file(ByteSpan start) noexcept {
  return start.size() >= sizeof format::kMetaMagic &&
         std::memcmp(start.data(), format::kMetaMagic, sizeof format::kMetaMagic) == 0;
}

std::shared_ptr<const MetaFile> MetaFile::open(const io::FileBytes& file,
                                               const ReadLimits& limits) {
  const MetaHeader header = read_header(file);
  io::MemoryBudget(limits, header.meta_length).take(kSection, header.meta_length);
  std::vector<MetaExtent> table(header.extent_count);
  const MutableByteSpan table_bytes = std::as_writable_bytes(std::span(table));
  io::pread_all(file.fd(), sizeof header, table_bytes, file.path());
  check_crc(header, table_bytes);
  // A limit of this library and no fault of the file. Checked after the CRC, so that a damaged
  // length is reported as damage.
  if (header.source_length > kMostSource) {
    fail_field(ErrorCode::limit_exceeded, kSection, "source_length",
               offsetof(MetaHeader, source_length), std::to_string(header.source_length),
               fmt::format("at most {}", kMostSource));
  }

  std::shared_ptr<MetaFile> out(new MetaFile(file.path(), io::create_memory_file()));
  out->extents_ = checked_extents(header, table);
  out->memory_.emplace(out->fd(), header.source_length);
  out->bytes_ = out->memory_->bytes();
  out->file_bytes_ = header.meta_length;

  integrity::Sha256 hasher;
  hasher.update(format::struct_bytes(header)).update(table_bytes);
  std::uint64_t at = sizeof header + table_bytes.size();
  for (const Extent& extent : out->extents_) {
    const MutableByteSpan bytes = out->memory_->bytes().subspan(extent.offset, extent.length);
    io::pread_all(file.fd(), at, bytes, file.path());
    hasher.update(bytes);
    at += extent.length;
    out->resident_ += extent.length;
  }
  Digest256 stored;
  io::pread_all(file.fd(), at, std::as_writable_bytes(std::span(stored.bytes)), file.path());
  if (stored != hasher.finish()) {
    throw IntegrityError(ErrorCode::checksum_mismatch,
                         "the side file's bytes do not match its closing checksum",
                         {.section = kSection, .offset = at});
  }
  join_neighbours(out->extents_);
  const std::uint64_t checksum_at = header.source_length - format::kChecksumLength;
  if (format::overlay<Digest256>(out->touched(checksum_at, format::kChecksumLength), 0, kSection) !=
      header.source_checksum) {
    fail_field(ErrorCode::inconsistent, kSection, "source_checksum",
               offsetof(MetaHeader, source_checksum), "another one",
               "the closing checksum of the source");
  }
  return out;
}

void MetaFile::fill(std::uint64_t offset, std::uint64_t length) const {
  if (length == 0) return;
  auto found = std::upper_bound(
      extents_.begin(), extents_.end(), offset,
      [](std::uint64_t wanted, const Extent& extent) { return wanted < extent.offset; });
  if (found != extents_.begin()) {
    --found;
    if (format::lies_within({offset, length}, found->offset, found->offset + found->length)) return;
  }
  throw UnsupportedError(ErrorCode::unsupported_feature,
                         "a side file holds no payloads, open the checkpoint itself",
                         {.section = kSection,
                          .offset = offset,
                          .value = fmt::format("bytes [{}, {})", offset, offset + length),
                          .bound = "texts and tables"});
}

}  // namespace thalia::container
