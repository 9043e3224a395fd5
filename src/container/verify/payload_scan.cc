// Verify would need two passes over a file, one for leaves and one for the digests of tensors; this
// makes them one, at the speed of memory. Threads take runs of whole blocks, and each hashes the
// pieces of tensors that end in its run, so every block and every piece belongs to exactly one
// thread. The pieces of one tensor are joined at the end, which the content hash was made for.
// docs/format/format.md, "Content hash".
#include "container/verify/payload_scan.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>

#include "base/parallel.h"
#include "container/file/verified_blocks.h"
#include "format/constants.h"
#include "format/header.h"
#include "format/tensor.h"
#include "integrity/block_tree.h"
#include "integrity/crc32.h"

namespace thalia::container {
namespace {

// The run of a thread, in whole blocks. A piece that begins before a run is read again from
// its beginning: half a MiB on average, so a run is a good deal longer.
constexpr std::uint64_t kWalk = 8 << 20;
// Bytes of a copied file that are read at once.
constexpr std::uint64_t kReadAtOnce = 1 << 20;
// The bytes that all hashes pass over before the next ones: few enough for the first caches.
constexpr std::uint64_t kScanStride = 64 << 10;

constexpr std::array<std::byte, sizeof(format::Header)> kNoHeader = {};

struct Piece {
  std::uint64_t begin;
  std::uint64_t end;
  std::size_t tensor;  // number in Structure::tensors
  integrity::PieceDigest digest;
};

// Compares leaves as the bytes of their blocks come, from the beginning of a block on.
class LeafWalk {
 public:
  LeafWalk(const format::Header& header, ByteSpan leaves, std::vector<std::uint64_t>& bad)
      : header_(header),
        leaves_(leaves),
        bad_(bad),
        hasher_(header.leaf_algorithm),
        length_(integrity::leaf_length(header.leaf_algorithm)) {}

  void pass(std::uint64_t at, ByteSpan bytes) {
    while (!bytes.empty()) {
      const std::uint64_t block = at >> header_.integrity_block_log2;
      const std::uint64_t end = std::min<std::uint64_t>((block + 1) << header_.integrity_block_log2,
                                                        header_.integrity_offset);
      const ByteSpan part = bytes.first(std::min<std::uint64_t>(end - at, bytes.size()));
      add(at, part);
      at += part.size();
      bytes = bytes.subspan(part.size());
      if (at == end) finish(block);
    }
  }

 private:
  // The header counts as zeros in the leaf of block 0. The closing checksum covers it, so an append
  // may change it without a new leaf.
  void add(std::uint64_t at, ByteSpan part) {
    if (at < kNoHeader.size()) {
      const std::size_t covered = std::min<std::size_t>(part.size(), kNoHeader.size() - at);
      hasher_.update(ByteSpan(kNoHeader).first(covered));
      part = part.subspan(covered);
    }
    hasher_.update(part);
  }

  void finish(std::uint64_t block) {
    std::array<std::byte, sizeof(Digest256)> leaf;
    hasher_.finish(MutableByteSpan(leaf).first(length_));
    const ByteSpan expected = leaves_.subspan(block * length_, length_);
    if (!std::equal(expected.begin(), expected.end(), leaf.begin())) bad_.push_back(block);
  }

  const format::Header& header_;
  ByteSpan leaves_;
  std::vector<std::uint64_t>& bad_;
  integrity::LeafHasher hasher_;
  std::uint64_t length_;
};

class Scan {
 public:
  Scan(const detail::OpenFile& file, const Structure& structure, const VerifyOptions& options,
       Findings& findings)
      : file_(file), options_(options), findings_(findings), end_(file.header().integrity_offset) {
    out_.digests.resize(structure.tensors.size());
    list_pieces(structure);
    if (file.header().checksum_type == ChecksumType::block_tree)
      leaves_ = file.unverified(file.header().integrity_offset, file.header().integrity_length);
  }

  PayloadScan run() {
    const std::uint64_t block = leaves_ ? 1ull << file_.header().integrity_block_log2 : 1;
    const std::uint64_t length = std::max(kWalk, block);
    file_.mapping().advise(0, kReadAheadBytes, io::Advice::will_need);
    parallel_for((end_ + length - 1) / length, options_.work.threads, [&](std::size_t i) {
      const std::uint64_t begin = i * length;
      const std::uint64_t end = std::min(end_, begin + length);
      file_.mapping().advise(begin + kReadAheadBytes, length, io::Advice::will_need);
      std::vector<std::uint64_t> bad;
      try {
        walk(begin, end, bad);
      } catch (const CancelledError&) {
        throw;
      } catch (const Error& error) {
        findings_.add(error);
        give_up(begin, end);
      }
      const std::lock_guard lock(mutex_);
      out_.bad_blocks.insert(out_.bad_blocks.end(), bad.begin(), bad.end());
      done_ += end - begin;
      if (options_.work.progress) options_.work.progress(done_, end_);
    });
    std::sort(out_.bad_blocks.begin(), out_.bad_blocks.end());
    join_pieces();
    return std::move(out_);
  }

 private:
  // Tensors overlap only in a file made to exhaust a verifier. The first of those that do is hashed
  // here, and the others one by one, so there are no more pieces than the file has room for.
  void list_pieces(const Structure& structure) {
    std::vector<std::size_t> raw;
    for (std::size_t i = 0; i < structure.tensors.size(); ++i)
      if (entry(structure, i).chunk_count == 0) raw.push_back(i);
    std::sort(raw.begin(), raw.end(), [&](std::size_t a, std::size_t b) {
      return entry(structure, a).stored_offset < entry(structure, b).stored_offset;
    });
    std::uint64_t free = 0;
    for (const std::size_t i : raw) {
      const format::TensorEntry& tensor = entry(structure, i);
      const std::uint64_t end = tensor.stored_offset + tensor.stored_length;
      if (tensor.stored_offset < free || end > end_) continue;
      free = end;
      out_.digests[i].taken = true;
      for (std::uint64_t at = tensor.stored_offset; at < end; at += format::kContentPiece)
        pieces_.push_back({at, std::min(end, at + format::kContentPiece), i, {}});
    }
  }

  const format::TensorEntry& entry(const Structure& structure, std::size_t i) const {
    return file_.tensor_entry(structure.tensors[i].number);
  }

  // The first piece that ends after an offset.
  std::vector<Piece>::iterator piece_behind(std::uint64_t offset) {
    return std::partition_point(pieces_.begin(), pieces_.end(),
                                [&](const Piece& piece) { return piece.end <= offset; });
  }

  // Hashes the blocks of [begin, end), and the pieces that end there.
  void walk(std::uint64_t begin, std::uint64_t end, std::vector<std::uint64_t>& bad) {
    std::optional<LeafWalk> leaves;
    if (leaves_) leaves.emplace(file_.header(), *leaves_, bad);
    auto piece = piece_behind(begin);
    const auto pieces_end = piece_behind(end);
    integrity::PieceHasher hasher;
    std::vector<std::byte> buffer;
    std::uint64_t at = begin;
    if (piece != pieces_end) at = std::min(at, piece->begin);
    while (at < end) {
      // No read crosses `begin`: up to it bytes count for a piece alone, from it for the blocks
      // too.
      const std::uint64_t limit = at < begin ? begin : end;
      const ByteSpan read = file_.verified_once(at, std::min(kReadAtOnce, limit - at), buffer);
      for (std::uint64_t from = 0; from < read.size(); from += kScanStride) {
        const ByteSpan stride = read.subspan(from, std::min(kScanStride, read.size() - from));
        if (leaves && at >= begin) leaves->pass(at + from, stride);
        pass(piece, pieces_end, hasher, at + from, stride);
      }
      at += read.size();
    }
  }

  static void pass(std::vector<Piece>::iterator& piece, std::vector<Piece>::iterator pieces_end,
                   integrity::PieceHasher& hasher, std::uint64_t at, ByteSpan bytes) {
    const std::uint64_t end = at + bytes.size();
    for (; piece != pieces_end && piece->begin < end; ++piece) {
      const std::uint64_t from = std::max(at, piece->begin);
      const std::uint64_t to = std::min(end, piece->end);
      hasher.update(bytes.subspan(from - at, to - from));
      if (to < piece->end) return;
      piece->digest = hasher.finish();
    }
  }

  // After a read error: the tensors with a piece in the run are hashed again, each by itself, as
  // the bytes that could not be read may not be theirs.
  void give_up(std::uint64_t begin, std::uint64_t end) {
    const std::lock_guard lock(mutex_);
    for (auto piece = piece_behind(begin); piece != piece_behind(end); ++piece)
      out_.digests[piece->tensor].unread = true;
  }

  void join_pieces() {
    for (RawDigest& digest : out_.digests) digest.digest = integrity::join_pieces({});
    std::vector<integrity::PieceDigest> digests;
    for (auto first = pieces_.begin(); first != pieces_.end();) {
      digests.clear();
      const std::size_t tensor = first->tensor;
      for (; first != pieces_.end() && first->tensor == tensor; ++first)
        digests.push_back(first->digest);
      out_.digests[tensor].digest = integrity::join_pieces(digests);
    }
  }

  const detail::OpenFile& file_;
  const VerifyOptions& options_;
  Findings& findings_;
  std::uint64_t end_;
  std::optional<ByteSpan> leaves_;
  std::vector<Piece> pieces_;  // in file order
  PayloadScan out_;
  std::mutex mutex_;
  std::uint64_t done_ = 0;
};

}  // namespace

PayloadScan scan_payloads(const detail::OpenFile& file, const Structure& structure,
                          const VerifyOptions& options, Findings& findings) {
  return Scan(file, structure, options, findings).run();
}

}  // namespace thalia::container
