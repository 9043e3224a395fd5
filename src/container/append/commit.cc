#include "container/append/commit.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/fail.h"
#include "base/parallel.h"
#include "container/append/compressed_tensor.h"
#include "container/file/block_choice.h"
#include "container/file/closing_checksum.h"
#include "container/file/dead_bytes.h"
#include "container/write/borrowed_indices.h"
#include "container/write/draft_image.h"
#include "container/write/file_image.h"
#include "container/write/header_builder.h"
#include "container/write/layout.h"
#include "container/write/payload_digest.h"
#include "format/header.h"
#include "format/overlay.h"
#include "integrity/block_tree.h"
#include "integrity/content_hash.h"
#include "io/posix_file.h"

namespace thalia::container {
namespace {

using format::struct_bytes;

// What is written between two looks at the cancellation.
constexpr std::uint64_t kAppendStride = 8 << 20;

// An append begins behind all that is old.
BlockGaps gaps_of(const format::Header& old) {
  const bool tree = old.checksum_type == ChecksumType::block_tree;
  return tree && !chosen_block_log2(old) ? BlockGaps(old.file_length) : BlockGaps();
}

class AppendWriter {
 public:
  AppendWriter(const io::LockedFile& file, const detail::OpenFile& old, Draft& draft,
               const AppendOptions& options)
      : file_(file),
        old_(old),
        draft_(draft),
        options_(options),
        layout_(draft, gaps_of(old.header())),
        image_(file.fd(), file.path()) {}

  AppendResult run() {
    old_.verify_for_append();
    check_borrowed_indices(draft_, options_.work.threads);
    digest();
    place();
    try {
      write_behind_end();
      write_header();
    } catch (...) {
      cut_debris();
      throw;
    }
    sync();  // whatever happens here, readers see the new state

    AppendResult result;
    result.file_bytes = header_.file_length;
    result.appended_bytes = header_.file_length - old_.header().file_length;
    std::vector<format::Extent> regions;
    for (const RegionPlace& place : layout_.regions()) regions.push_back(place.extent);
    result.dead_bytes = dead_bytes(header_, std::move(regions));
    result.generation = header_.generation;
    result.regions = header_.num_regions;
    result.tensors = static_cast<std::uint32_t>(draft_.tensors.size());
    result.closing_checksum = checksum_;
    result.sync_seconds = sync_seconds_;
    return result;
  }

 private:
  bool tree() const { return header_.checksum_type == ChecksumType::block_tree; }

  void write_behind_end() {
    DraftImage sections(draft_, layout_);
    sections.add_sections(image_, true);
    complete_header(sections.build_directory());
    sections.add_tables(image_, header_);
    add_old_bytes();
    image_.sort();

    write_image();
    const std::vector<std::byte> leaves = complete_leaves();
    checksum_ = closing_checksum(header_, leaves, [&](const auto& visit) {
      image_.for_each(sizeof header_, header_.integrity_offset, visit);
    });
    const std::vector<ByteSpan> tail{leaves, as_byte_span(checksum_.bytes)};
    io::pwritev_all(file_.fd(), header_.integrity_offset, tail, file_.path());
    // The debris of an earlier append goes: its commit record must not be found behind this one.
    io::set_file_size(file_.fd(), header_.file_length, file_.path());
    sync();
  }

  void digest() {
    PayloadDigest payloads(draft_, layout_.file_order());
    parallel_for(payloads.piece_count(), options_.work.threads, [&](std::size_t piece) {
      stop_if_cancelled(options_.work.cancel);
      integrity::Xxh3 hasher;
      payloads.digest(piece, hasher);
    });
  }

  void place() {
    for (const std::uint32_t i : layout_.file_order()) {
      DraftTensor& tensor = draft_.tensors[i];
      if (options_.compression.codec != Codec::store && !tensor.in_chunks)
        compressed_.push_back(compress_tensor(tensor, options_));
    }
    place_tensors(draft_, layout_);
  }

  void complete_header(std::uint64_t directory_length) {
    const format::Header& old = old_.header();
    header_ = draft_header(draft_, layout_);
    const auto place = [&](std::optional<unsigned> block_log2) {
      place_tables(header_, layout_.end(), directory_length, old.checksum_type, old.leaf_algorithm,
                   block_log2);
    };
    place(chosen_block_log2(old));
    if (tree() && !blocks_stay() && !old_is_whole()) place(old.integrity_block_log2);
    set_timestamp(header_, options_.timestamp);
    header_.generation = old.generation + 1;
    header_.file_uuid = old.file_uuid;
    set_header_crc(header_);
  }

  bool blocks_stay() const {
    return tree() && header_.integrity_block_log2 == old_.header().integrity_block_log2;
  }

  // New leaves over old damage would hide it: then the old ones stay, and tell of it.
  bool old_is_whole() const {
    try {
      old_.verify_all();
      return true;
    } catch (const IntegrityError&) {
      return false;
    }
  }

  // The first block whose leaf is new: the one in which the old blocks ended, or the one behind it;
  // all are where the file outgrew the size of its blocks.
  std::uint64_t first_block() const {
    return blocks_stay() ? old_.header().integrity_offset >> header_.integrity_block_log2 : 0;
  }

  // What a new leaf or checksum covers of the old file: the bytes that were checked, where they
  // were checked. The header stays out: it is zero to a leaf.
  void add_old_bytes() {
    const std::uint64_t begin =
        std::max<std::uint64_t>(sizeof header_, first_block() << header_.integrity_block_log2);
    image_.add(begin, old_.unverified(begin, old_.header().file_length - begin));
  }

  void write_image() {
    const std::uint64_t begin = old_.header().file_length;
    const std::uint64_t end = header_.integrity_offset;
    for (std::uint64_t at = begin; at < end; at += kAppendStride) {
      stop_if_cancelled(options_.work.cancel);
      const std::uint64_t stride_end = std::min(at + kAppendStride, end);
      image_.write(at, stride_end);
      if (options_.work.progress) options_.work.progress(stride_end - begin, end - begin);
    }
  }

  // Leaves of blocks that did not change are taken over; that they are the file's was checked.
  std::vector<std::byte> complete_leaves() const {
    std::vector<std::byte> leaves(header_.integrity_length);
    if (!tree()) return leaves;
    const auto algorithm = header_.leaf_algorithm;
    const std::uint64_t length = integrity::leaf_length(algorithm);
    const std::uint64_t first = first_block();
    const ByteSpan kept = old_.unverified(old_.header().integrity_offset, first * length);
    std::copy(kept.begin(), kept.end(), leaves.begin());
    const unsigned log2 = header_.integrity_block_log2;
    const std::uint64_t end = header_.integrity_offset;
    parallel_for(integrity::block_count(end, log2) - first, options_.work.threads,
                 [&](std::size_t i) {
                   stop_if_cancelled(options_.work.cancel);
                   const std::uint64_t begin = (first + i) << log2;
                   integrity::LeafHasher hasher(algorithm);
                   image_.for_each(begin, std::min(begin + (std::uint64_t{1} << log2), end),
                                   [&](ByteSpan piece) { hasher.update(piece); });
                   hasher.finish(MutableByteSpan(leaves).subspan((first + i) * length, length));
                 });
    return leaves;
  }

  void sync() {
    if (options_.durability != Durability::none)
      sync_seconds_ +=
          io::sync_file(file_.fd(), options_.durability == Durability::full, file_.path());
  }

  void write_header() {
    stop_if_cancelled(options_.work.cancel);
    if (!file_.is_at_path()) {
      throw UsageError(ErrorCode::wrong_state,
                       "another file took this one's place while it was appended to",
                       {.path = file_.path().string()});
    }
    io::pwrite_all(file_.fd(), 0, struct_bytes(header_), file_.path());
  }

  // After an error. Debris behind the old state is harmless, but behind a header that is torn it is
  // what recovery needs.
  void cut_debris() noexcept {
    const format::Header& old = old_.header();
    try {
      format::Header found;
      io::pread_all(file_.fd(), 0, std::as_writable_bytes(std::span(&found, 1)), file_.path());
      if (std::memcmp(&found, &old, sizeof old) != 0) {
        io::pwrite_all(file_.fd(), 0, struct_bytes(old), file_.path());
        sync();
      }
      io::set_file_size(file_.fd(), old.file_length, file_.path());
    } catch (...) {
      // The first error is the one to tell.
    }
  }

  const io::LockedFile& file_;
  const detail::OpenFile& old_;
  Draft& draft_;
  const AppendOptions& options_;
  Layout layout_;
  FileImage image_;
  std::vector<std::vector<std::vector<std::byte>>> compressed_;  ///< what the draft borrows of it
  format::Header header_{};
  Digest256 checksum_{};
  double sync_seconds_ = 0;
};

}  // namespace

AppendResult write_append(const io::LockedFile& file, const detail::OpenFile& old, Draft& draft,
                          const AppendOptions& options) {
  return AppendWriter(file, old, draft, options).run();
}

}  // namespace thalia::container
