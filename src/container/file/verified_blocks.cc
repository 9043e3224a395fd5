// One bit a block, set only after the bytes of the block were found to have their leaf, and never
// cleared. The release on setting it and the acquire on reading it order it after the bytes, which
// another thread may have copied in. No lock is taken: two threads that meet in a block both hash
// it, which is rare and costs less than a lock at every look-up.
//
// A leaf proves nothing before the closing checksum has vouched for the table, so every path calls
// ensure_leaves() before it compares one. docs/format/format.md, "Block tree".
#include "container/file/verified_blocks.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "base/fail.h"
#include "base/parallel.h"
#include "format/constants.h"
#include "integrity/block_tree.h"

namespace thalia::container {
namespace {

// The least that a thread checks at a time: for less its start costs more than the hash, and a disk
// is read slowly in smaller parts.
constexpr std::uint64_t kCheckedTogether = 1 << 20;
// The least block for which the kernel is asked to read ahead. A page fault in a smaller one brings
// in all of it.
constexpr unsigned kAdvisedLog2 = 16;

}  // namespace

void VerifiedBlocks::Free::operator()(void* memory) const noexcept {
  std::free(memory);
}

VerifiedBlocks::VerifiedBlocks(const io::FileBytes& mapping, const format::Header& header,
                               unsigned threads)
    : mapping_(mapping),
      file_(mapping.bytes().first(header.file_length)),
      header_(header),
      threads_(threads),
      leaves_(file_.subspan(header.integrity_offset, header.integrity_length)),
      blocks_(integrity::block_count(header.integrity_offset, header.integrity_block_log2)) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  static_assert(sizeof(std::atomic<std::uint64_t>) == sizeof(std::uint64_t));
  bits_.reset(static_cast<std::atomic<std::uint64_t>*>(
      std::calloc(blocks_ / 64 + 1, sizeof(std::uint64_t))));
  if (!bits_) throw std::bad_alloc();
}

void VerifiedBlocks::ensure_leaves() {
  leaves_once_.run([&] {
    mapping_.touch(header_.integrity_offset, header_.file_length - header_.integrity_offset);
    const Digest256 expected = integrity::closing_checksum(header_, leaves_);
    const ByteSpan stored = file_.subspan(header_.file_length - format::kChecksumLength);
    if (std::memcmp(expected.bytes, stored.data(), sizeof expected.bytes) != 0) {
      throw IntegrityError(
          ErrorCode::checksum_mismatch,
          "header and integrity table do not match the closing checksum, one of the three was "
          "changed",
          {.section = "integrity", .offset = std::uint64_t{header_.integrity_offset}});
    }
  });
}

bool VerifiedBlocks::is_done(std::uint64_t block) const noexcept {
  return (bits_[block / 64].load(std::memory_order_acquire) >> (block % 64)) & 1;
}

std::uint64_t VerifiedBlocks::end_of(std::uint64_t block) const noexcept {
  return std::min<std::uint64_t>((block + 1) << header_.integrity_block_log2,
                                 header_.integrity_offset);
}

void fail_block(const format::Header& header, std::uint64_t block) {
  const std::uint64_t begin = block << header.integrity_block_log2;
  const std::uint64_t end = std::min<std::uint64_t>(begin + (1ull << header.integrity_block_log2),
                                                    header.integrity_offset);
  throw IntegrityError(
      ErrorCode::checksum_mismatch,
      fmt::format("bytes [{}, {}) are not the ones that were written; verify tells which part of "
                  "them is damaged",
                  begin, end),
      {.offset = begin});
}

void VerifiedBlocks::check(std::uint64_t block) {
  const std::uint64_t begin = block << header_.integrity_block_log2;
  const ByteSpan bytes = mapping_.touched(begin, end_of(block) - begin);
  if (!integrity::leaf_matches(bytes, block, header_, leaves_)) fail_block(header_, block);
  note(block);
}

void VerifiedBlocks::read(std::uint64_t offset, MutableByteSpan out) {
  while (!out.empty()) {
    const std::uint64_t block = offset >> header_.integrity_block_log2;
    const std::uint64_t length = std::min<std::uint64_t>(end_of(block) - offset, out.size());
    // A whole block is read past mapping_ and hashed where the caller wants it. Its bit stays
    // clear, as the bytes at mapping_ were not looked at. Part of a block cannot be hashed alone
    // and comes by way of mapping_.
    const bool whole =
        offset == block << header_.integrity_block_log2 && offset + length == end_of(block);
    if (whole && !is_done(block)) {
      ensure_leaves();
      mapping_.read(offset, out.first(length));
      if (!integrity::leaf_matches(out.first(length), block, header_, leaves_))
        fail_block(header_, block);
    } else {
      ensure(offset, length);
      std::memcpy(out.data(), file_.data() + offset, length);
    }
    out = out.subspan(length);
    offset += length;
  }
}

void VerifiedBlocks::note(std::uint64_t block) noexcept {
  bits_[block / 64].fetch_or(1ull << (block % 64), std::memory_order_release);
}

ByteSpan VerifiedBlocks::leaves(std::uint64_t first, std::uint64_t count) {
  ensure_leaves();
  const std::uint64_t length = integrity::leaf_length(header_.leaf_algorithm);
  return leaves_.subspan(first * length, count * length);
}

void VerifiedBlocks::ensure(std::uint64_t offset, std::uint64_t length) {
  if (length == 0) return;
  const std::uint64_t first = offset >> header_.integrity_block_log2;
  const std::uint64_t last = (offset + length - 1) >> header_.integrity_block_log2;
  if (first == last) {  // the common look-up: no allocation, no threads
    if (is_done(first)) return;
    ensure_leaves();
    if (header_.integrity_block_log2 >= kAdvisedLog2)
      mapping_.advise(first << header_.integrity_block_log2, 1ull << header_.integrity_block_log2,
                      io::Advice::will_need);
    return check(first);
  }
  std::vector<std::uint64_t> open;
  for (std::uint64_t block = first; block <= last; ++block) {
    if (!is_done(block)) open.push_back(block);
  }
  if (open.empty()) return;
  ensure_leaves();
  const std::uint64_t block_bytes = 1ull << header_.integrity_block_log2;
  const std::uint64_t end = (last + 1) * block_bytes;
  const std::uint64_t together = std::max<std::uint64_t>(kCheckedTogether / block_bytes, 1);
  // The kernel reads kReadAheadBytes before the hashing: the start is asked for here, the rest
  // by each job.
  mapping_.advise(open.front() * block_bytes,
                  std::min(kReadAheadBytes, end - open.front() * block_bytes),
                  io::Advice::will_need);
  parallel_for((open.size() + together - 1) / together, threads_, [&](std::size_t i) {
    const std::size_t begin = i * together;
    const std::size_t behind = std::min<std::size_t>(begin + together, open.size());
    const std::uint64_t ahead = open[begin] * block_bytes + kReadAheadBytes;
    if (ahead < end) mapping_.advise(ahead, together * block_bytes, io::Advice::will_need);
    for (std::size_t at = begin; at < behind; ++at) check(open[at]);
  });
}

}  // namespace thalia::container
