// An append in the order that makes it safe: check what is carried over; write everything new
// after the old end; sync; overwrite the header in one write; sync. Until the header is written,
// every reader sees the old state, whose bytes never change. After it, the append has happened,
// whatever fails. The commit record, on the disk before the header is touched, lets recover()
// finish or undo a header that was torn. docs/format/writing.md, "In-place append".
#include "container/append/commit.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/fail.h"
#include "base/parallel.h"
#include "container/file/block_choice.h"
#include "container/file/closing_checksum.h"
#include "container/file/dead_bytes.h"
#include "container/plan/borrowed_indices.h"
#include "container/plan/chunk_layout.h"
#include "container/plan/file_plan.h"
#include "container/plan/header_builder.h"
#include "container/plan/layout.h"
#include "container/write/chunk_encoder.h"
#include "container/write/file_pieces.h"
#include "container/write/payload_digest.h"
#include "container/write/sections.h"
#include "format/chunk.h"
#include "format/header.h"
#include "format/overlay.h"
#include "integrity/block_tree.h"
#include "integrity/content_hash.h"
#include "io/file/posix_file.h"
#include "io/output/save_time.h"
#include "thalia/append.h"

namespace thalia::container {
namespace {

// A borrowed payload in chunks that are held in memory: what an append adds is small.
// docs/format/format.md, "Chunks".
//
// All chunks of a tensor are encoded at once and kept in memory until they are written. A save has
// a pipeline for this; an append does without, because what it adds is small.

/// Compresses a tensor that is digested and lies in its pieces: afterwards they are its chunks.
/// Nothing changes where no chunk shrinks. @return the chunks' bytes, which the pieces borrow.
/// @throws CancelledError.
std::vector<std::vector<std::byte>> compress_tensor(TensorPlan& tensor,
                                                    const AppendOptions& options) {
  const std::uint64_t chunk_bytes = options.compression.chunk_bytes;
  const std::size_t count = (tensor.logical_length + chunk_bytes - 1) / chunk_bytes;
  std::vector<std::vector<std::byte>> stored(count);
  std::vector<format::ChunkEntry> chunks(count);
  parallel_for(count, options.change.work.threads, [&](std::size_t i) {
    stop_if_cancelled(options.change.work.cancel);
    const std::uint64_t begin = i * chunk_bytes;
    const std::uint64_t end = std::min(begin + chunk_bytes, tensor.logical_length);
    std::vector<std::byte> joined;
    chunks[i] = encode_entry(*options.compression.codec, options.compression.level,
                             chunk_layout(tensor, begin, end),
                             joined_range(tensor.pieces, begin, end, joined), stored[i]);
  });
  if (all_stored(chunks)) return {};
  // From here on the pieces are stored bytes; logical ones are not needed any more, since the
  // tensor is digested.
  tensor.in_chunks = true;
  tensor.pieces = std::vector<ByteSpan>(stored.begin(), stored.end());
  tensor.stored_length = 0;
  for (format::ChunkEntry& chunk : chunks) {
    chunk.offset = tensor.stored_length;
    tensor.stored_length += chunk.stored_length;
  }
  tensor.chunks = std::move(chunks);
  return stored;
}

using format::struct_bytes;

// What is written between two looks at the cancellation, and between two calls of progress.
constexpr std::uint64_t kAppendStride = 8 << 20;

// As in a save, gaps only where nobody chose the block size. The file's length is known to be at
// least the old one.
BlockGaps gaps_of(const format::Header& old) {
  const bool tree = old.checksum_type == ChecksumType::block_tree;
  return tree && !chosen_block_log2(old) ? BlockGaps(old.file_length) : BlockGaps();
}

class AppendWriter {
 public:
  AppendWriter(const io::LockedFile& file, const detail::OpenFile& old, FilePlan& plan,
               const AppendOptions& options)
      : file_(file),
        old_(old),
        plan_(plan),
        options_(options),
        layout_(plan, gaps_of(old.header())),
        image_(file.fd(), file.path()) {}

  AppendResult run() {
    // First, before a byte is written: a new checksum over old damage would hide it.
    old_.verify_for_append();
    check_borrowed_indices(plan_, options_.change.work.threads);
    // Digested before compression replaces the pieces by chunks; placed after it, since stored
    // lengths are known then.
    digest();
    place();
    try {
      write_behind_end();
      write_header();
    } catch (...) {
      cut_debris();
      throw;
    }
    // Not undone if it fails: readers see the new state already.
    sync();

    AppendResult result;
    result.file_bytes = header_.file_length;
    result.appended_bytes = header_.file_length - old_.header().file_length;
    std::vector<format::Extent> regions;
    for (const RegionLayout& place : layout_.regions()) regions.push_back(place.extent);
    result.dead_bytes = dead_bytes(header_, std::move(regions));
    result.generation = header_.generation;
    result.regions = header_.num_regions;
    result.tensors = static_cast<std::uint32_t>(plan_.tensors.size());
    result.closing_checksum = checksum_;
    result.sync_seconds = sync_seconds_;
    return result;
  }

 private:
  bool tree() const { return header_.checksum_type == ChecksumType::block_tree; }

  void write_behind_end() {
    Sections sections(plan_, layout_);
    sections.add_sections(image_, true);
    complete_header(sections.build_directory());
    sections.add_tables(image_, header_);
    // Old bytes are in the image to be hashed only; writing begins after them.
    add_old_bytes();
    image_.sort();

    write_extents();
    const std::vector<std::byte> leaves = complete_leaves();
    checksum_ = closing_checksum(header_, leaves, [&](const auto& visit) {
      image_.for_each(sizeof header_, header_.integrity_offset, visit);
    });
    const std::vector<ByteSpan> tail{leaves, as_byte_span(checksum_.bytes)};
    io::pwritev_all(file_.fd(), header_.integrity_offset, tail, file_.path());
    // An earlier append that failed may have left a longer file. Its commit record must not be
    // found after this one.
    io::set_file_size(file_.fd(), header_.file_length, file_.path());
    sync();
  }

  void digest() {
    PayloadDigest payloads(plan_, layout_.file_order());
    parallel_for(payloads.piece_count(), options_.change.work.threads, [&](std::size_t piece) {
      stop_if_cancelled(options_.change.work.cancel);
      integrity::Xxh3 hasher;
      payloads.digest(piece, hasher);
    });
  }

  void place() {
    for (const std::uint32_t i : layout_.file_order()) {
      TensorPlan& tensor = plan_.tensors[i];
      if (options_.compression.codec != Codec::none && !tensor.in_chunks)
        compressed_.push_back(compress_tensor(tensor, options_));
    }
    place_tensors(plan_, layout_);
  }

  void complete_header(std::uint64_t directory_length) {
    const format::Header& old = old_.header();
    header_ = build_header(plan_, layout_);
    const auto place = [&](std::optional<unsigned> block_log2) {
      place_tables(header_, layout_.end(), directory_length, old.checksum_type, old.leaf_algorithm,
                   block_log2);
    };
    // The block size stays if somebody chose it. Else it follows the file's size; then all leaves
    // may be new, and every old byte has to be checked first.
    place(chosen_block_log2(old));
    if (tree() && !blocks_stay() && !old_is_whole()) place(old.integrity_block_log2);
    header_.timestamp =
        options_.timestamp ? *options_.timestamp : io::save_time(options_.change.output);
    header_.generation = old.generation + 1;
    header_.file_uuid = old.file_uuid;
    set_header_crc(header_);
  }

  bool blocks_stay() const {
    return tree() && header_.integrity_block_log2 == old_.header().integrity_block_log2;
  }

  // New leaves over old damage would vouch for it. If there is damage, the old block size and the
  // old leaves stay, and the damage is still found.
  bool old_is_whole() const {
    try {
      old_.verify_all();
      return true;
    } catch (const IntegrityError&) {
      return false;
    }
  }

  // The first block whose leaf is new. If blocks keep their size, that is the block in which the
  // old ones ended, or the one after it; else it is block 0. A whole-file checksum begins at 0
  // too.
  std::uint64_t first_block() const {
    return blocks_stay() ? old_.header().integrity_offset >> header_.integrity_block_log2 : 0;
  }

  // The old bytes that new leaves or a whole-file checksum cover, in the memory in which they were
  // checked. The header stays out: to a leaf it is zero.
  void add_old_bytes() {
    const std::uint64_t begin =
        std::max<std::uint64_t>(sizeof header_, first_block() << header_.integrity_block_log2);
    image_.add(begin, old_.unverified(begin, old_.header().file_length - begin));
  }

  void write_extents() {
    const std::uint64_t begin = old_.header().file_length;
    const std::uint64_t end = header_.integrity_offset;
    for (std::uint64_t at = begin; at < end; at += kAppendStride) {
      stop_if_cancelled(options_.change.work.cancel);
      const std::uint64_t stride_end = std::min(at + kAppendStride, end);
      image_.write(at, stride_end);
      if (options_.change.work.progress)
        options_.change.work.progress(stride_end - begin, end - begin);
    }
  }

  // Leaves of blocks that did not change are copied from the old table, which verify_for_append()
  // checked against the closing checksum: the cost of an append is that of what is new.
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
    parallel_for(integrity::block_count(end, log2) - first, options_.change.work.threads,
                 [&](std::size_t i) {
                   stop_if_cancelled(options_.change.work.cancel);
                   const std::uint64_t begin = (first + i) << log2;
                   integrity::LeafHasher hasher(algorithm);
                   image_.for_each(begin, std::min(begin + (std::uint64_t{1} << log2), end),
                                   [&](ByteSpan piece) { hasher.update(piece); });
                   hasher.finish(MutableByteSpan(leaves).subspan((first + i) * length, length));
                 });
    return leaves;
  }

  void sync() {
    if (options_.change.output.durability != Durability::none)
      sync_seconds_ += io::sync_file(
          file_.fd(), options_.change.output.durability == Durability::full, file_.path());
  }

  void write_header() {
    stop_if_cancelled(options_.change.work.cancel);
    // The lock is on the file, not on its name. An append to a file that was replaced meanwhile
    // would be lost without a word.
    if (!file_.is_at_path()) {
      throw UsageError(ErrorCode::wrong_state,
                       "another file took this one's place while it was appended to",
                       {.path = file_.path().string()});
    }
    io::pwrite_all(file_.fd(), 0, struct_bytes(header_), file_.path());
  }

  // After an error. Debris after a whole old header is harmless. After a torn one, the commit
  // record in it is what recover() needs: so the old header goes back and is synced before anything
  // is cut.
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
  FilePlan& plan_;
  const AppendOptions& options_;
  Layout layout_;
  FilePieces image_;
  std::vector<std::vector<std::vector<std::byte>>> compressed_;  ///< what the plan borrows of it
  format::Header header_{};
  Digest256 checksum_{};
  double sync_seconds_ = 0;
};

}  // namespace

AppendResult write_append(const io::LockedFile& file, const detail::OpenFile& old, FilePlan& plan,
                          const AppendOptions& options) {
  return AppendWriter(file, old, plan, options).run();
}

}  // namespace thalia::container
