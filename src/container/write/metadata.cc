// write_metadata_file(): a copy of a file's tables and texts, which opens like the file but has no
// payloads. Everything it takes is verified first. The header is the one that was read at opening:
// an append that runs meanwhile changes no other old byte, so the copied tables fit it.
// docs/format/format.md, "Side files".
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "container/file/meta_file.h"
#include "container/file/open_file.h"
#include "container/wrap/frame_memory.h"
#include "container/write/meta_extents.h"
#include "format/constants.h"
#include "format/header.h"
#include "format/meta.h"
#include "integrity/crc32.h"
#include "integrity/sha256.h"
#include "io/file/posix_file.h"
#include "thalia/files.h"
#include "thalia/side_file.h"

namespace thalia {
namespace {

using format::Extent;
using format::MetaExtent;
using format::MetaHeader;

// Bytes of the source, verified where the block tree covers them. What lies after is the tree
// itself, with the closing checksum.
ByteSpan source_bytes(const detail::OpenFile& file, const Extent& extent) {
  const std::uint64_t covered_end = file.header().integrity_offset;
  const std::uint64_t end = extent.offset + extent.length;
  file.verified(extent.offset, std::min(end, covered_end) - extent.offset);
  return file.unverified(extent.offset, extent.length);
}

// The file ends with a SHA-256 of all before it, which is made as the bytes pass.
class HashedOutput {
 public:
  explicit HashedOutput(OutputFile& out) : out_(out) {}
  void write(ByteSpan bytes) {
    hasher_.update(bytes);
    out_.write(bytes);
  }
  void write_checksum() {
    const Digest256 digest = hasher_.finish();
    out_.write(std::as_bytes(std::span(digest.bytes)));
  }

 private:
  OutputFile& out_;
  integrity::Sha256 hasher_;
};

void write_side_file(const detail::OpenFile& file, OutputFile& target) {
  const std::vector<Extent> extents = container::meta_extents(file);
  std::vector<MetaExtent> table;
  std::uint64_t held = 0;
  for (const Extent& extent : extents) {
    MetaExtent& entry = table.emplace_back();
    entry.offset = extent.offset;
    entry.length = extent.length;
    held += extent.length;
  }
  const ByteSpan table_bytes = std::as_bytes(std::span(table));
  MetaHeader header{};
  std::memcpy(header.magic, format::kMetaMagic, sizeof header.magic);
  header.meta_version = format::kMetaVersion;
  header.extent_count = static_cast<std::uint32_t>(table.size());
  header.source_length = file.header().file_length;
  header.meta_length = sizeof header + table_bytes.size() + held + format::kChecksumLength;
  header.source_checksum = file.closing_checksum();
  header.meta_crc32 = integrity::crc32(table_bytes, integrity::crc32(format::struct_bytes(header)));

  HashedOutput out(target);
  out.write(format::struct_bytes(header));
  out.write(table_bytes);
  for (const Extent& extent : extents) {
    ByteSpan bytes = source_bytes(file, extent);
    if (extent.offset == 0) {  // as it was when the file was opened: an append may change it
      out.write(format::struct_bytes(file.header()));
      bytes = bytes.subspan(sizeof(format::Header));
    }
    out.write(bytes);
  }
  out.write_checksum();
}

}  // namespace

MetadataFileResult write_metadata_file(const std::filesystem::path& source,
                                       const std::filesystem::path& target,
                                       const MetadataFileOptions& options) {
  const Stopwatch watch;
  const auto file = detail::OpenFile::open(source, {.input = options.input, .work = options.work});
  container::check_not_the_source(source, target);
  if ((file->header().flags & format::kFlagDelta) != 0) {
    throw UnsupportedError(ErrorCode::unsupported_feature, "a delta has no side file",
                           {.path = source.string()});
  }
  OutputFile out(target, options.output, options.work.cancel);
  file->named([&] { write_side_file(*file, out); });
  out.commit();
  return {{.input_bytes = file->header().file_length,
           .output_bytes = out.size(),
           .tensors = file->directory().tensor_count,
           .seconds = watch.seconds()},
          file->region_count()};
}

bool is_metadata_file(const std::filesystem::path& path) {
  const io::UniqueFd fd = io::open_for_reading(path);
  std::byte start[sizeof format::kMetaMagic]{};
  const std::uint64_t size = io::file_size(fd.get(), path);
  if (size < sizeof start) return false;
  io::pread_all(fd.get(), 0, start, path);
  return container::begins_side_file(start);
}

}  // namespace thalia
