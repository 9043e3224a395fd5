// A tensor's bytes arrive in units, in any order and from several workers. Each byte of logical_
// is written by the one worker that brings it, so the copies need no lock. mutex_ guards what parts
// have in common: chunks that lie in several pieces, CRCs of the pieces, doubt and error. The
// atomic count of units orders all of it: the worker that brings it to zero sees what the others
// wrote, and checks the whole.
#include "container/stream/payload.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "container/file/fail_payload.h"
#include "container/read/chunk_reader.h"
#include "container/read/quantized_arrays.h"
#include "format/chunk.h"
#include "integrity/content_hash.h"
#include "integrity/crc32.h"

namespace thalia::container {

StreamPayload::StreamPayload(const StreamPlan& plan, const StreamTensor& tensor, StreamPlace out,
                             StreamPlace codes)
    : tensor_(tensor),
      chunks_(std::span(plan.chunks).subspan(tensor.first_chunk, tensor.chunk_count)),
      verifies_(plan.verifies_tensors && tensor.chunk_count == 0),  // chunks have their own CRC-32s
      quantized_(plan.quantization_of(tensor)),
      restores_(quantized_ != nullptr && plan.restores),
      out_(std::move(out)),
      codes_(std::move(codes)),
      logical_(restores_ ? codes_.bytes : out_.bytes),
      units_left_(tensor.units) {}

// Compressed chunks have no place: their stored bytes go through a buffer.
MutableByteSpan StreamPayload::place_of(std::uint64_t begin, std::uint64_t end) const {
  if (!chunks_.empty() || begin < tensor_.offset || end > tensor_.end()) return {};
  return logical_.subspan(begin - tensor_.offset, end - begin);
}

void StreamPayload::accept(std::uint64_t offset, ByteSpan piece) {
  const std::uint64_t begin = std::max(offset, tensor_.offset);
  const std::uint64_t end = std::min(offset + piece.size(), tensor_.end());
  if (begin >= end) return;
  // The rest of the piece belongs to neighbours, or lies in a gap.
  const ByteSpan own = piece.subspan(begin - offset, end - begin);
  chunks_.empty() ? accept_raw(begin, own) : accept_chunks(begin, own);
}

void StreamPayload::accept_raw(std::uint64_t offset, ByteSpan piece) {
  if (verifies_) {
    // Outside the lock; check_crc() joins the pieces' CRCs in the order of the file.
    const std::uint32_t crc = integrity::crc32(piece);
    const std::lock_guard lock(mutex_);
    crcs_.push_back({offset, piece.size(), crc});
  }
  std::byte* const place = logical_.data() + (offset - tensor_.offset);
  // Equal: the bytes were read to place_of().
  if (place != piece.data()) std::memcpy(place, piece.data(), piece.size());
}

// Chunks lie one after the other without gaps; the plan has checked their entries. So the first
// chunk that ends after `offset` holds it, and the following ones hold the rest. A chunk that is
// whole in the piece is decoded where it lies. The parts of any other are gathered first.
void StreamPayload::accept_chunks(std::uint64_t offset, ByteSpan piece) {
  const auto ends_by = [](const format::ChunkEntry& chunk, std::uint64_t at) {
    return chunk.offset + chunk.stored_length <= at;
  };
  const auto first = std::lower_bound(chunks_.begin(), chunks_.end(), offset, ends_by);
  for (auto i = static_cast<std::size_t>(first - chunks_.begin()); !piece.empty(); ++i) {
    const format::ChunkEntry& chunk = chunks_[i];
    const std::uint64_t end = chunk.offset + chunk.stored_length;
    const ByteSpan part = piece.first(std::min<std::uint64_t>(piece.size(), end - offset));
    if (part.size() == chunk.stored_length) {
      decode(i, part);
    } else {
      std::unique_lock lock(mutex_);
      auto [entry, added] = split_.try_emplace(i);
      Split& split = entry->second;
      if (added) {
        split.stored.resize(chunk.stored_length);
        split.missing = chunk.stored_length;
      }
      std::memcpy(split.stored.data() + (offset - chunk.offset), part.data(), part.size());
      split.missing -= part.size();
      if (split.missing == 0) {
        // Decoding takes long; other workers may gather meanwhile.
        const auto whole = split_.extract(entry);
        lock.unlock();
        decode(i, whole.mapped().stored);
      }
    }
    piece = piece.subspan(part.size());
    offset += part.size();
  }
}

void StreamPayload::decode(std::size_t chunk, ByteSpan stored) const {
  // All chunks but the last have the first one's length.
  const std::uint64_t begin = chunk * std::uint64_t{chunks_.front().raw_length};
  decode_stored(chunks_[chunk], stored, logical_.subspan(begin, chunks_[chunk].raw_length));
}

bool StreamPayload::finish_unit() noexcept {
  return units_left_.fetch_sub(1, std::memory_order_acq_rel) == 1;
}

void StreamPayload::doubt(std::uint64_t block) {
  const std::lock_guard lock(mutex_);
  doubted_block_ = std::min(block, doubted_block_.value_or(block));
}

std::optional<std::uint64_t> StreamPayload::doubted_block() const {
  const std::lock_guard lock(mutex_);
  return doubted_block_;
}

bool StreamPayload::has_digests() const {
  // decode_stored() has checked the CRC-32 of each chunk, or has failed.
  if (!chunks_.empty()) return true;
  // One thread: this runs in a worker, and the others have work.
  const integrity::ContentDigest digest = integrity::content_digest(logical_, 1);
  return digest.crc32 == tensor_.crc32 && digest.hash == tensor_.content_hash;
}

void StreamPayload::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
}

std::exception_ptr StreamPayload::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void StreamPayload::check_crc() {
  if (!verifies_) return;
  std::sort(crcs_.begin(), crcs_.end(),
            [](const PieceCrc& a, const PieceCrc& b) { return a.offset < b.offset; });
  std::uint32_t crc = 0;
  for (const PieceCrc& piece : crcs_)
    crc = integrity::crc32_combine(crc, piece.crc32, piece.length);
  if (crc != tensor_.crc32) fail_payload_crc(tensor_.offset, crc, tensor_.crc32);
}

void StreamPayload::finish_quantized(unsigned threads) {
  if (quantized_ == nullptr) return;
  const QuantizedArrays arrays(quantized_->entry, quantized_->side, logical_);
  if (!restores_) {
    quantized_view_ = arrays.view();
    return;
  }
  arrays.restore_all(out_.bytes, threads);
  codes_ = {};  // their memory is free for the next tensor
}

}  // namespace thalia::container
