// Checks what payloads say against the digests that payload_scan took, and against the rules of
// their encodings. The cause is reported rather than the symptom: a bad block is a finding of its
// own only where no damaged tensor in it explains it. Rules of an encoding are checked only after
// the digests hold, as damaged bytes would break them too.
#include "container/verify/payloads.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/fail.h"
#include "base/parallel.h"
#include "container/file/bad_blocks.h"
#include "container/file/closing_checksum.h"
#include "container/read/chunk_reader.h"
#include "container/read/low_rank_arrays.h"
#include "container/read/quantized_arrays.h"
#include "container/read/sparse_delta.h"
#include "container/read/step_delta.h"
#include "container/read/tensor_reading.h"
#include "container/verify/elements.h"
#include "container/verify/payload_scan.h"
#include "format/constants.h"
#include "format/directory.h"
#include "format/header.h"
#include "format/quantized.h"
#include "format/tensor.h"
#include "integrity/block_tree.h"
#include "integrity/content_hash.h"
#include "integrity/crc32.h"
#include "io/memory/allocation_limit.h"

namespace thalia::container {
namespace {

// Compressed tensors of this size and more are checked one at a time by all threads, so that only
// one is in memory; others one a thread.
constexpr std::uint64_t kLargeTensor = 8 << 20;

// Restores the elements and compares their digests with those of the encoder: only this shows
// that this machine decodes what that one meant.
void check_quantized(const detail::OpenFile& file, const format::TensorEntry& entry,
                     ByteSpan logical) {
  const format::QuantizedSideData& side = file.quantized_tensor(entry);
  const QuantizedArrays arrays(entry, side, logical);
  arrays.check_unused_bits();
  integrity::ContentHasher hasher;
  const std::uint64_t width = dtype_bits(entry.dtype) / 8;
  std::vector<std::byte> piece;
  for (std::uint64_t i = 0; i < arrays.pieces(); ++i) {
    piece.resize(arrays.piece_elements(i) * width);
    arrays.restore(i, piece);
    hasher.update(piece);
  }
  const Digest128 hash = hasher.content_hash();
  const auto fail = [&](const char* field) {
    throw IntegrityError(
        ErrorCode::checksum_mismatch, "other elements come out than when the tensor was quantized",
        {.section = "payload", .field = field, .offset = std::uint64_t{entry.stored_offset}});
  };
  if (hasher.crc32() != side.crc32) fail("crc32");
  if (hash != side.content_hash) fail("content_hash");
}

class PayloadCheck {
 public:
  PayloadCheck(const detail::OpenFile& file, const Structure& structure, const PayloadScan& scan,
               const VerifyOptions& options, Findings& findings)
      : file_(file),
        structure_(structure),
        scan_(scan),
        bad_blocks_(scan.bad_blocks, file.header()),
        options_(options),
        findings_(findings) {}

  void run() {
    std::vector<std::size_t> small;
    for (std::size_t i = 0; i < structure_.tensors.size(); ++i) {
      const format::TensorEntry& entry = file_.tensor_entry(structure_.tensors[i].number);
      if (entry.chunk_count != 0 && entry.logical_length >= kLargeTensor) {
        check(i, options_.work.threads);
      } else {
        small.push_back(i);
      }
    }
    parallel_for(small.size(), options_.work.threads, [&](std::size_t i) { check(small[i], 1); });
    report_unexplained();
  }

 private:
  void check(std::size_t i, unsigned threads) {
    const SoundTensor& tensor = structure_.tensors[i];
    const format::TensorEntry& entry = file_.tensor_entry(tensor.number);
    const format::DirectoryRegion& record = file_.directory_region(tensor.region);
    const std::string_view region = file_.name(record.name_offset, record.name_length);
    const std::string_view name = file_.name(entry.name_offset, entry.name_length);
    const bool sound = findings_.check([&] { check_payload(i, entry, threads); }, region, name);
    if (sound) return;
    const std::lock_guard lock(mutex_);
    explaining_.push_back({entry.stored_offset - sizeof(format::TensorHeader),
                           entry.stored_length + sizeof(format::TensorHeader)});
  }

  void check_payload(std::size_t i, const format::TensorEntry& entry, unsigned threads) {
    const Encoding encoding = entry.encoding;
    const bool delta = needs_base(encoding) && (file_.header().flags & format::kFlagDelta) != 0;
    const bool quantized = encoding == Encoding::quantized;
    if (!is_plain(encoding) && !delta && !quantized) return;  // was reported
    // In memory as a whole only if it has to be: to be decoded, or to look up indices.
    std::vector<std::uint64_t> memory;
    ByteSpan logical;
    const bool arrays = encoding != Encoding::dense && encoding != Encoding::xor_base;
    if (entry.chunk_count != 0 || arrays) logical = in_memory(entry, memory);
    const integrity::ContentDigest digest = entry.chunk_count != 0
                                                ? integrity::content_digest(logical, threads)
                                                : raw_digest(scan_.digests[i], entry);
    if (digest.crc32 != entry.crc32) {
      const format::Extent where =
          bad_blocks_.first_part({entry.stored_offset, entry.stored_length});
      throw IntegrityError(
          ErrorCode::checksum_mismatch,
          fmt::format("the payload is not the one that was written; it differs in [{}, {})",
                      where.offset, where.offset + where.length),
          {.section = "payload",
           .field = "crc32",
           .offset = where.offset,
           .value = fmt::format("{:#010x}", digest.crc32),
           .bound = fmt::format("{:#010x}", std::uint32_t{entry.crc32})});
    }
    if (digest.hash != entry.content_hash) {
      throw IntegrityError(ErrorCode::checksum_mismatch,
                           "the payload has another content hash than the directory says",
                           {.section = "payload",
                            .field = "content_hash",
                            .offset = std::uint64_t{entry.stored_offset}});
    }
    if (encoding == Encoding::sparse_delta) {
      const SparseDelta list = check_sparse_delta(entry, logical);
      check_sparse_delta_padding(entry, logical);
      return check_elements(entry, list.values);
    }
    if (encoding == Encoding::low_rank_delta) {
      io::MemoryBudget budget(options_.input.limits, entry.stored_length);
      budget.take("payload", logical.size());
      read_low_rank(entry, logical, budget);
      return;
    }
    if (encoding == Encoding::step_delta) {
      // Chunks decode by the classes of the base's elements: not here, where there is no base.
      io::MemoryBudget budget(options_.input.limits, entry.stored_length);
      read_step_delta(entry, logical.first(step_head_bytes(entry)), budget);
      return;
    }
    if (quantized) return check_quantized(file_, entry, logical);
    if (delta) {
      // Made of two tensors whose unused bits are zero, so its own are zero too.
      if (encoding == Encoding::xor_base) check_last_byte(entry, logical);
      return;
    }
    if (encoding != Encoding::dense) {
      const SoundTensor& tensor = structure_.tensors[i];
      const TensorView view = file_.tensor_view(tensor.region, tensor.number);
      return check_elements(entry, check_sparse_payload(view, logical));
    }
    if (entry.chunk_count != 0) {
      check_elements(entry, logical);
    } else if (has_illegal_codes(entry.dtype)) {
      file_.pass_over(entry.stored_offset, entry.stored_length,
                      [&](std::uint64_t, ByteSpan part) { check_elements(entry, part); });
    }
    check_last_byte(entry, logical);
  }

  // @param logical of a tensor in chunks; one that is stored raw need not be in memory.
  void check_last_byte(const format::TensorEntry& entry, ByteSpan logical) const {
    if (entry.logical_length == 0) return;
    if (entry.chunk_count != 0) return check_unused_bits(entry, logical);
    std::vector<std::byte> last;
    check_unused_bits(entry,
                      file_.verified_once(entry.stored_offset + entry.stored_length - 1, 1, last));
  }

  ByteSpan in_memory(const format::TensorEntry& entry, std::vector<std::uint64_t>& memory) const {
    // Not verified: verify compares digests itself, and damage is to be reported and not thrown.
    if (entry.chunk_count == 0 && file_.options().input.access != Access::copied)
      return file_.unverified(entry.stored_offset, entry.stored_length);
    io::MemoryBudget(options_.input.limits, entry.stored_length)
        .take("payload", entry.logical_length);
    memory.resize(entry.logical_length / 8 + 1);
    const MutableByteSpan buffer =
        std::as_writable_bytes(std::span(memory)).first(entry.logical_length);
    if (entry.chunk_count != 0) {
      ChunkReader(file_, entry).decode_all(buffer);
    } else {
      file_.read_verified(entry.stored_offset, buffer);
    }
    return buffer;
  }

  integrity::ContentDigest raw_digest(const RawDigest& scanned,
                                      const format::TensorEntry& entry) const {
    if (scanned.taken && !scanned.unread) return scanned.digest;
    // A tensor that the scan gave up on, or that overlaps another. What could not be read may have
    // been beside it, so its own bytes are read again.
    integrity::ContentHasher hasher;
    file_.pass_over(entry.stored_offset, entry.stored_length,
                    [&](std::uint64_t, ByteSpan part) { hasher.update(part); });
    return {hasher.crc32(), hasher.content_hash()};
  }

  void report_unexplained() {
    // A block that no damaged tensor reaches into has its damage elsewhere: the finding lists the
    // sections that have a part in it, as nothing tells which of them it is.
    const std::vector<bool> explained = bad_blocks_.touched_by(explaining_);
    // The extents of each section, in the order of the file.
    std::vector<std::pair<std::string_view, std::vector<format::Extent>>> sections;
    for (const Covered& covered : structure_.covered) {
      auto section = std::find_if(sections.begin(), sections.end(), [&](const auto& known) {
        return known.first == covered.section;
      });
      if (section == sections.end()) section = sections.insert(section, {covered.section, {}});
      section->second.push_back(covered.extent);
    }
    std::vector<std::string> holds(bad_blocks_.size());
    for (const auto& [section, extents] : sections) {
      const std::vector<bool> touched = bad_blocks_.touched_by(extents);
      for (std::size_t i = 0; i < holds.size(); ++i) {
        if (touched[i]) holds[i].append(holds[i].empty() ? "" : ", ").append(section);
      }
    }
    for (std::size_t i = 0; i < bad_blocks_.size(); ++i) {
      if (explained[i]) continue;
      const format::Extent block = bad_blocks_.extent(i);
      findings_.add(
          {.code = ErrorCode::checksum_mismatch,
           .section = "integrity",
           .offset = block.offset,
           .length = block.length,
           .message = fmt::format(
               "block {} is not the one that was written; every payload in it is whole, it "
               "also holds: {}",
               bad_blocks_.number(i), holds[i].empty() ? "padding" : holds[i])});
    }
  }

  const detail::OpenFile& file_;
  const Structure& structure_;
  const PayloadScan& scan_;
  const BadBlocks bad_blocks_;
  const VerifyOptions& options_;
  Findings& findings_;
  std::mutex mutex_;
  std::vector<format::Extent> explaining_;  ///< payloads that are damaged, with their headers
};

void check_closing_checksum(const detail::OpenFile& file, Findings& findings) {
  const format::Header& header = file.header();
  if (header.checksum_type == ChecksumType::block_tree) {
    const ByteSpan leaves = file.unverified(header.integrity_offset, header.integrity_length);
    if (integrity::closing_checksum(header, leaves) == file.closing_checksum()) return;
    findings.add({.code = ErrorCode::checksum_mismatch,
                  .section = "checksum",
                  .offset = header.file_length - format::kChecksumLength,
                  .length = format::kChecksumLength,
                  .message = "header and integrity table do not match the closing checksum"});
  } else {
    const std::uint64_t covered = header.file_length - format::kChecksumLength;
    findings.check([&] {
      check_whole_file(header, file.closing_checksum(), [&](const auto& visit) {
        file.pass_over(sizeof header, covered - sizeof header,
                       [&](std::uint64_t, ByteSpan part) { visit(part); });
      });
    });
  }
}

}  // namespace

void check_sound_payload(const detail::OpenFile& file, const TensorView& view,
                         const format::TensorEntry& entry, unsigned threads) {
  std::vector<std::uint64_t> memory;
  ByteSpan logical;
  if (entry.chunk_count == 0) {
    logical = file.unverified(entry.stored_offset, entry.stored_length);
  } else {
    io::MemoryBudget(file.options().input.limits, entry.stored_length)
        .take("payload", entry.logical_length);
    memory.resize(entry.logical_length / 8 + 1);
    const MutableByteSpan buffer =
        std::as_writable_bytes(std::span(memory)).first(entry.logical_length);
    ChunkReader(file, entry).decode_all(buffer);
    logical = buffer;
  }
  const integrity::ContentDigest digest = integrity::content_digest(logical, threads);
  if (digest.crc32 != entry.crc32 || digest.hash != entry.content_hash) {
    throw IntegrityError(ErrorCode::checksum_mismatch,
                         "the payload is not the one that was written",
                         {.section = "payload", .offset = std::uint64_t{entry.stored_offset}});
  }
  if (entry.encoding == Encoding::quantized) return check_quantized(file, entry, logical);
  if (entry.encoding != Encoding::dense)
    return check_elements(entry, check_sparse_payload(view, logical));
  check_elements(entry, logical);
  if (!logical.empty()) check_unused_bits(entry, logical);
}

void verify_payloads(const detail::OpenFile& file, const Structure& structure,
                     const VerifyOptions& options, Findings& findings) {
  check_closing_checksum(file, findings);
  const PayloadScan scan = scan_payloads(file, structure, options, findings);
  PayloadCheck(file, structure, scan, options, findings).run();
}

}  // namespace thalia::container
