// Here Verification turns into checks; what an open file hands out passes by here. on_first_touch
// checks the blocks that the bytes lie in or, in a file without a block tree, each raw tensor as a
// whole. by_tensor checks each raw tensor and never blocks, so names and tables are not verified.
// at_open and off check nothing here: the first is done when open() returns. Chunks have a CRC of
// their own, which ChunkReader checks whatever the option.
//
// A block that differs condemns all its bytes, but a payload in it may be whole. Its CRC-32 and
// content hash may speak for it if its entry is verified and leaves are not SHA-256.
// docs/format/format.md, "Block tree".
#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "container/file/closing_checksum.h"
#include "container/file/fail_payload.h"
#include "container/file/open_file.h"
#include "format/chunk.h"
#include "format/constants.h"
#include "format/tensor.h"
#include "integrity/content_hash.h"

namespace thalia::detail {
namespace {

constexpr std::uint64_t kPart = 4 << 20;    // hashed between two looks at the stop token
constexpr std::uint64_t kStep = 256 << 20;  // the same, by all threads

bool has_digests(const integrity::ContentDigest& digest, const format::TensorEntry& entry) {
  return digest.crc32 == entry.crc32 && digest.hash == entry.content_hash;
}

}  // namespace

ByteSpan OpenFile::verified(std::uint64_t offset, std::uint64_t length) const {
  stop_if_cancelled(options_.work.cancel);
  // Decodes frames first, one a thread. Blocks are smaller, and the threads that check those of one
  // frame would all wait for the one that decodes it.
  if (mapping_->backing() == io::Backing::decoded) touch(offset, length);
  if (checks_blocks()) {
    named([&] { blocks_->ensure(offset, length); });
  } else {
    touch(offset, length);
  }
  return bytes_.subspan(offset, length);
}

ByteSpan OpenFile::verified_once(std::uint64_t offset, std::uint64_t length,
                                 std::vector<std::byte>& buffer) const {
  // What is verified has to stay where it was checked. Only if nothing is checked may bytes pass
  // through the buffer.
  if (options_.input.access != Access::copied || options_.verification != Verification::off)
    return verified(offset, length);
  stop_if_cancelled(options_.work.cancel);
  buffer.resize(length);
  named([&] { mapping_->read(offset, buffer); });
  return buffer;
}

void OpenFile::read_verified(std::uint64_t offset, MutableByteSpan out) const {
  stop_if_cancelled(options_.work.cancel);
  if (options_.input.access == Access::copied) {
    if (options_.verification == Verification::off)
      return named([&] { mapping_->read(offset, out); });
    if (checks_blocks()) return named([&] { blocks_->read(offset, out); });
  }
  std::memcpy(out.data(), verified(offset, out.size()).data(), out.size());
}

ByteSpan OpenFile::verified_payload(const format::TensorEntry& entry, std::uint64_t offset,
                                    std::uint64_t length) const {
  const bool first_touch = options_.verification == Verification::on_first_touch;
  if (options_.verification == Verification::by_tensor || (first_touch && !blocks_))
    named([&] { verify_tensor_once(entry); });
  try {
    return verified(offset, length);
  } catch (const IntegrityError&) {
    // The error stays that of the block: is_sound() keeps its own to itself.
    if (!is_sound(entry)) throw;
  }
  return unverified(offset, length);
}

// Whether the digests of its entry vouch for a raw tensor in a damaged block; the damage is
// elsewhere in the block then. The entry was verified when it was fetched.
bool OpenFile::is_sound(const format::TensorEntry& entry) const {
  if (!may_do_without_blocks() || entry.chunk_count != 0) return false;
  try {
    verify_tensor_once(entry);
    return true;
  } catch (const IntegrityError&) {
    return false;
  }
}

bool OpenFile::read_despite_blocks(const format::TensorEntry& entry, MutableByteSpan out) const {
  if (!may_do_without_blocks() || entry.chunk_count != 0) return false;
  named([&] { mapping_->read(entry.stored_offset, out); });
  return has_digests(integrity::content_digest(out, options_.work.threads), entry);
}

ByteSpan OpenFile::chunk_bytes(const format::ChunkEntry& chunk,
                               std::vector<std::byte>& buffer) const {
  try {
    return verified_once(chunk.offset, chunk.stored_length, buffer);
  } catch (const IntegrityError&) {
    if (!may_do_without_blocks()) throw;
  }
  return unverified(chunk.offset, chunk.stored_length);
}

// Checks a raw tensor as a whole against the digests of its entry. Two threads may both do it, none
// skips it. `entry` has to lie in the directory, as its place there is its number.
void OpenFile::verify_tensor_once(const format::TensorEntry& entry) const {
  if (entry.chunk_count != 0) return;  // each chunk is checked when it is decoded
  tensors_once_.run(
      [&] { tensors_verified_ = std::make_unique<std::atomic<bool>[]>(directory_->tensor_count); });
  const auto* table = reinterpret_cast<const format::TensorEntry*>(
      bytes_.data() + header_.directory_offset + directory_->tensors_offset);
  std::atomic<bool>& done = tensors_verified_[static_cast<std::size_t>(&entry - table)];
  if (done.load(std::memory_order_acquire)) return;
  const integrity::ContentDigest digest = integrity::content_digest(
      unverified(entry.stored_offset, entry.stored_length), options_.work.threads);
  if (digest.crc32 != entry.crc32)
    container::fail_payload_crc(entry.stored_offset, digest.crc32, entry.crc32);
  if (!has_digests(digest, entry)) {
    throw IntegrityError(ErrorCode::checksum_mismatch, "the payload does not have its content hash",
                         {.section = "payload",
                          .field = "content_hash",
                          .offset = std::uint64_t{entry.stored_offset}});
  }
  done.store(true, std::memory_order_release);
}

void OpenFile::verify_all(const std::stop_token& cancel) const {
  return named([&]() -> void {
    if (!blocks_) return verify_whole_checksum(cancel);
    for (std::uint64_t at = 0; at < header_.integrity_offset; at += kStep) {
      stop_if_cancelled(cancel);
      blocks_->ensure(at, std::min<std::uint64_t>(kStep, header_.integrity_offset - at));
    }
  });
}

void OpenFile::verify_for_append() const {
  return named([&]() -> void {
    if (!blocks_) return verify_whole_checksum({});
    blocks_->ensure_leaves();
    // The append continues the last block if that ends within one. The block gets a new leaf,
    // which would vouch for damage in its old bytes; all other leaves stay.
    const std::uint64_t end = header_.integrity_offset;
    const std::uint64_t last = end >> header_.integrity_block_log2 << header_.integrity_block_log2;
    blocks_->ensure(last, end - last);
  });
}

void OpenFile::verify_whole_checksum(const std::stop_token& cancel) const {
  const std::uint64_t covered = header_.file_length - format::kChecksumLength;
  const ByteSpan rest = unverified(sizeof header_, covered - sizeof header_);
  container::check_whole_file(header_, closing_checksum(), [&](const auto& visit) {
    for (std::uint64_t at = 0; at < rest.size(); at += kPart) {
      stop_if_cancelled(options_.work.cancel);
      stop_if_cancelled(cancel);
      visit(rest.subspan(at, std::min<std::uint64_t>(kPart, rest.size() - at)));
    }
  });
}

}  // namespace thalia::detail
