#include "container/verify_payloads.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/fail.h"
#include "base/parallel.h"
#include "container/chunk_reader.h"
#include "container/tensor_reading.h"
#include "container/verified_blocks.h"
#include "integrity/block_tree.h"
#include "integrity/content_hash.h"
#include "integrity/crc32.h"
#include "thalia/format/constants.h"

namespace thalia::container {
namespace {

// Tensors of this size and more are checked one at a time by all threads, smaller ones one a
// thread.
constexpr std::uint64_t kLargeTensor = 8 << 20;

std::uint64_t block_begin(const format::Header& header, std::uint64_t block) {
  return block << header.integrity_block_log2;
}

std::uint64_t block_end(const format::Header& header, std::uint64_t block) {
  return std::min<std::uint64_t>(block_begin(header, block + 1), header.integrity_offset);
}

class PayloadCheck {
 public:
  PayloadCheck(const detail::OpenFile& file, const std::vector<std::uint64_t>& bad_blocks,
               const VerifyOptions& options, Findings& findings)
      : file_(file),
        bad_blocks_(bad_blocks),
        options_(options),
        findings_(findings),
        explained_(bad_blocks.size()) {}

  void run(const Structure& structure) {
    std::vector<SoundTensor> small;
    for (const SoundTensor& tensor : structure.tensors) {
      if (file_.tensor_entry(tensor.number).logical_length >= kLargeTensor) {
        check(tensor, options_.threads);
      } else {
        small.push_back(tensor);
      }
    }
    parallel_for(small.size(), options_.threads, [&](std::size_t i) { check(small[i], 1); });
    report_unexplained(structure);
  }

 private:
  void check(const SoundTensor& tensor, unsigned threads) {
    const format::TensorEntry& entry = file_.tensor_entry(tensor.number);
    const format::DirectoryRegion& record = file_.directory_region(tensor.region);
    const std::string_view region = file_.name(record.name_offset, record.name_length);
    const std::string_view name = file_.name(entry.name_offset, entry.name_length);
    const bool sound =
        findings_.check([&] { check_payload(tensor, entry, threads); }, region, name);
    if (!sound)
      explain({entry.stored_offset - sizeof(format::TensorHeader),
               entry.stored_length + sizeof(format::TensorHeader)});
  }

  void check_payload(const SoundTensor& tensor, const format::TensorEntry& entry,
                     unsigned threads) {
    const auto encoding = static_cast<Encoding>(entry.encoding);
    if (!is_plain(encoding)) return;  // its logical bytes are not in this file alone
    std::vector<std::uint64_t> decoded;
    ByteSpan logical = file_.unverified(entry.stored_offset, entry.stored_length);
    if (entry.chunk_count != 0) {
      if (entry.logical_length > options_.limits.max_allocation_bytes) {
        fail_limit("payload", "max_allocation_bytes", entry.logical_length,
                   options_.limits.max_allocation_bytes);
      }
      decoded.resize(entry.logical_length / 8 + 1);
      const MutableByteSpan buffer =
          std::as_writable_bytes(std::span(decoded)).first(entry.logical_length);
      ChunkReader(file_, entry).decode_all(buffer);
      logical = buffer;
    }
    const integrity::ContentDigest digest = integrity::content_digest(logical, threads);
    if (digest.crc32 != entry.crc32) {
      const format::Extent where = first_bad({entry.stored_offset, entry.stored_length});
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
    if (std::memcmp(digest.hash.bytes, entry.content_hash, sizeof entry.content_hash) != 0) {
      throw IntegrityError(ErrorCode::checksum_mismatch,
                           "the payload has another content hash than the directory says",
                           {.section = "payload",
                            .field = "content_hash",
                            .offset = std::uint64_t{entry.stored_offset}});
    }
    check_values(tensor, entry, encoding, logical);
  }

  void check_values(const SoundTensor& tensor, const format::TensorEntry& entry, Encoding encoding,
                    ByteSpan logical) {
    const auto dtype = static_cast<DType>(entry.dtype);
    if (encoding != Encoding::dense) {
      return check_sparse_payload(file_.tensor_view(tensor.region, tensor.number), logical);
    }
    if (dtype == DType::boolean) {
      const auto bad = std::find_if(logical.begin(), logical.end(),
                                    [](std::byte b) { return b > std::byte{1}; });
      if (bad != logical.end()) {
        fail_field(ErrorCode::bad_value, "payload", "bool", entry.stored_offset,
                   std::to_string(std::to_integer<int>(*bad)), "0 or 1");
      }
    }
    if (dtype_is_packed(dtype) && !logical.empty()) {
      std::uint64_t elements = 1;
      for (unsigned d = 0; d < entry.ndim; ++d) elements *= entry.shape[d];
      const unsigned used = static_cast<unsigned>(elements % 8 * dtype_bits(dtype) % 8);
      if (used != 0 && std::to_integer<unsigned>(logical.back()) >> used != 0) {
        fail_field(ErrorCode::bad_value, "payload", "padding bits",
                   entry.stored_offset + entry.stored_length - 1,
                   std::to_string(std::to_integer<unsigned>(logical.back())),
                   fmt::format("{} bits in use", used));
      }
    }
  }

  // The part of `extent` that lies in its first bad block; all of it where no block tells.
  format::Extent first_bad(format::Extent extent) const {
    for (const std::uint64_t block : bad_blocks_) {
      const std::uint64_t begin = std::max(extent.offset, block_begin(file_.header(), block));
      const std::uint64_t end =
          std::min(extent.offset + extent.length, block_end(file_.header(), block));
      if (begin < end) return {begin, end - begin};
    }
    return extent;
  }

  void explain(format::Extent extent) {
    for (std::size_t i = 0; i < bad_blocks_.size(); ++i) {
      if (block_begin(file_.header(), bad_blocks_[i]) < extent.offset + extent.length &&
          extent.offset < block_end(file_.header(), bad_blocks_[i])) {
        explained_[i].store(true);
      }
    }
  }

  void report_unexplained(const Structure& structure) {
    for (std::size_t i = 0; i < bad_blocks_.size(); ++i) {
      if (explained_[i]) continue;
      const std::uint64_t begin = block_begin(file_.header(), bad_blocks_[i]);
      const std::uint64_t end = block_end(file_.header(), bad_blocks_[i]);
      std::string holds;
      for (const Covered& covered : structure.covered) {
        const std::uint64_t covered_end = covered.extent.offset + covered.extent.length;
        if (covered_end <= begin || covered.extent.offset >= end ||
            holds.find(covered.section) != std::string::npos)
          continue;
        holds += (holds.empty() ? "" : ", ") + std::string(covered.section);
      }
      findings_.add(
          {.section = "integrity",
           .offset = begin,
           .length = end - begin,
           .message = fmt::format(
               "block {} is not the one that was written; every payload in it is whole, it "
               "also holds: {}",
               bad_blocks_[i], holds.empty() ? "padding" : holds)});
    }
  }

  const detail::OpenFile& file_;
  const std::vector<std::uint64_t>& bad_blocks_;
  const VerifyOptions& options_;
  Findings& findings_;
  std::vector<std::atomic<bool>> explained_;
};

std::vector<std::uint64_t> verify_block_tree(const detail::OpenFile& file,
                                             const VerifyOptions& options, Findings& findings) {
  const format::Header& header = file.header();
  const ByteSpan leaves = file.unverified(header.integrity_offset, header.integrity_length);
  const Digest256 expected = integrity::closing_checksum(header, leaves);
  if (std::memcmp(expected.bytes, file.closing_checksum().data(), sizeof expected.bytes) != 0) {
    findings.add({.section = "checksum",
                  .offset = header.file_length - format::kChecksumLength,
                  .length = format::kChecksumLength,
                  .message = "header and integrity table do not match the closing checksum"});
  }
  const std::uint64_t blocks =
      integrity::block_count(header.integrity_offset, header.integrity_block_log2);
  file.mapping().advise(0, kReadAheadBytes, io::Advice::will_need);
  std::mutex mutex;
  std::uint64_t done = 0;
  std::vector<std::uint64_t> bad;
  parallel_for(blocks, options.threads, [&](std::size_t block) {
    const std::uint64_t ahead = block_begin(header, block) + kReadAheadBytes;
    file.mapping().advise(ahead, block_end(header, block) - block_begin(header, block),
                          io::Advice::will_need);
    const bool matches = integrity::leaf_matches(
        file.unverified(block_begin(header, block),
                        block_end(header, block) - block_begin(header, block)),
        block, header, leaves);
    const std::lock_guard lock(mutex);
    if (!matches) bad.push_back(block);
    done += block_end(header, block) - block_begin(header, block);
    if (options.progress) options.progress(done, header.integrity_offset);
  });
  std::sort(bad.begin(), bad.end());
  return bad;
}

}  // namespace

std::vector<std::uint64_t> verify_checksum(const detail::OpenFile& file,
                                           const VerifyOptions& options, Findings& findings) {
  if (file.header().checksum_type == static_cast<std::uint32_t>(format::ChecksumType::block_tree)) {
    return verify_block_tree(file, options, findings);
  }
  findings.check([&] { file.verify_all(); });
  return {};
}

void verify_payloads(const detail::OpenFile& file, const Structure& structure,
                     const std::vector<std::uint64_t>& bad_blocks, const VerifyOptions& options,
                     Findings& findings) {
  PayloadCheck(file, bad_blocks, options, findings).run(structure);
}

}  // namespace thalia::container
