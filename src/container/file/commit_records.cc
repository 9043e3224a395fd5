// Finds the header to restore where the first bytes of a file are damaged. Anything may lie on a
// multiple of 64, also the record of another file that was stored as a payload. So a record counts
// only if it holds as a header, says that it is where it is, and has the closing checksum before
// its file_length that follows from it.
//
// Costs have an upper limit for files made to exhaust the search: a place costs a compare of a few
// bytes, a record its CRC, and only the kMostTried best records a pass over the file.
// docs/format/writing.md, "Recovery".
#include "container/file/commit_records.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/fail.h"
#include "base/parallel.h"
#include "container/file/checked_headers.h"
#include "container/file/closing_checksum.h"
#include "container/file/verified_blocks.h"
#include "format/constants.h"
#include "integrity/block_tree.h"
#include "thalia/error.h"

namespace thalia::container {
namespace {

// Every generation leaves one record, and the search ends at the first whole one. Only a file made
// of records needs more than these, and costs this many passes. docs/format/writing.md asks for at
// least 64.
constexpr std::size_t kMostTried = 64;

bool has_tree(const format::Header& header) {
  return header.checksum_type == ChecksumType::block_tree;
}

// Whether 256 bytes can be the commit record at `offset`. Compares only what is cheap, as this runs
// for every multiple of 64 in the file.
bool may_be_record(const format::Header& header, std::uint64_t offset) {
  return std::memcmp(header.magic, format::kMagic, sizeof format::kMagic) == 0 &&
         header.major_version == format::kMajorVersion &&
         header.integrity_offset == offset + sizeof header;
}

bool holds(const format::Header& header, std::uint64_t file_size, const ReadLimits& limits) {
  try {
    check_header(header, file_size, limits);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// The highest generation first; of equal ones the record that is later in the file.
bool is_better(const CommitRecord& a, const CommitRecord& b) {
  return a.header.generation != b.header.generation ? a.header.generation > b.header.generation
                                                    : a.offset > b.offset;
}

std::uint64_t count_damaged_blocks(ByteSpan file, const format::Header& header, ByteSpan leaves,
                                   unsigned threads) {
  std::atomic<std::uint64_t> damaged{0};
  parallel_for(integrity::block_count(header.integrity_offset, header.integrity_block_log2),
               threads, [&](std::size_t block) {
                 if (!integrity::block_matches(file, block, header, leaves)) ++damaged;
               });
  return damaged;
}

// Whether directory header and closing checksum hold; counts the damaged blocks.
bool check_state(ByteSpan all, CommitRecord& record, const ReadLimits& limits, unsigned threads) {
  const format::Header& header = record.header;
  const ByteSpan file = all.first(header.file_length);
  try {
    check_directory_header(file, header, limits);
  } catch (const Error&) {
    return false;
  }
  const ByteSpan leaves = file.subspan(header.integrity_offset, header.integrity_length);
  const ByteSpan covered = file.subspan(sizeof header, header.integrity_offset - sizeof header);
  const Digest256 expected =
      closing_checksum(header, leaves, [&](const auto& visit) { visit(covered); });
  const ByteSpan stored = file.last(format::kChecksumLength);
  if (std::memcmp(expected.bytes, stored.data(), sizeof expected.bytes) != 0) return false;
  if (has_tree(header)) record.damaged_blocks = count_damaged_blocks(file, header, leaves, threads);
  return true;
}

}  // namespace

// A whole header of another version, or one beyond the limits of the caller, is not damaged, and
// restoring an older state over it would lose data. An UnsupportedError counts as damage only if
// the CRC does not hold, as then the version itself may be what was damaged.
bool may_be_recovered(const Error& error, ByteSpan file) {
  if (error.code() == ErrorCode::limit_exceeded) return false;
  if (dynamic_cast<const UnsupportedError*>(&error) == nullptr) return true;
  return !header_crc_holds(*reinterpret_cast<const format::Header*>(file.data()));
}

RecordSearch find_commit_record(const io::FileBytes& mapping, const ReadLimits& limits,
                                unsigned threads, const std::stop_token& cancel) {
  RecordSearch out;
  const ByteSpan file = mapping.touched(0, mapping.bytes().size());
  std::vector<CommitRecord> candidates;
  if (file.size() < 2 * sizeof(format::Header)) return out;
  std::uint64_t offset =
      (file.size() - sizeof(format::Header)) / format::kAlignment * format::kAlignment;
  for (; offset >= sizeof(format::Header); offset -= format::kAlignment) {
    // The walk goes backwards, against the read-ahead of the kernel, so it asks for the bytes
    // itself.
    if (offset % kReadAheadBytes == 0) {
      stop_if_cancelled(cancel);
      mapping.advise(offset - std::min(offset, kReadAheadBytes), kReadAheadBytes,
                     io::Advice::will_need);
    }
    const auto& header = *reinterpret_cast<const format::Header*>(file.data() + offset);
    if (!may_be_record(header, offset) || !holds(header, file.size(), limits)) continue;
    ++out.records;
    candidates.push_back({offset, header});
    // Drops the worse half now and then, so that a file of records does not fill the memory.
    if (candidates.size() < 2 * kMostTried) continue;
    std::sort(candidates.begin(), candidates.end(), is_better);
    candidates.resize(kMostTried);
  }
  std::sort(candidates.begin(), candidates.end(), is_better);
  if (candidates.size() > kMostTried) candidates.resize(kMostTried);
  for (CommitRecord& record : candidates) {
    stop_if_cancelled(cancel);
    if (!check_state(file, record, limits, threads)) continue;
    if (record.damaged_blocks == 0) {
      out.best = record;
      break;
    }
    // The best damaged state, unless an earlier generation turns out to be whole.
    if (!out.best) out.best = record;
  }
  return out;
}

}  // namespace thalia::container
