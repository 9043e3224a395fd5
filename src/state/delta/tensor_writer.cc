// Chooses how a delta stores each tensor: not at all, whole, as a difference, as a list, as
// products. The choice is made from samples, and a list is counted before it is written; nothing is
// written twice. Whatever is chosen, what comes out is the given tensor, bit for bit unless the
// options allow a loss, and the digest of what comes out is computed from the very bytes that are
// stored.

#include "state/delta/tensor_writer.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/byte_xor.h"
#include "base/parallel.h"
#include "codec/step/step_kind.h"
#include "format/delta.h"
#include "format/payload.h"
#include "state/delta/converted_base.h"
#include "state/delta/low_rank_delta.h"
#include "state/delta/step_change.h"
#include "state/value/in_order.h"
#include "thalia/error.h"
#include "thalia/types.h"

namespace thalia::state {
namespace {

// A list may become this many times as large as the samples promised before it is given up.
constexpr double kListSlack = 2;
// Bytes that a list may have in any case: a few elements that no sample met.
constexpr std::uint64_t kSmallList = 64 << 10;
// Bytes of a piece that are digested while they are in the cache.
constexpr std::size_t kCached = 128 << 10;
// From here on, decoding the first chunk of a base costs little beside the digest of the tensor.
constexpr std::uint64_t kLargeTensor = 8 << 20;
// The part of the allowed memory that a list or steps may take, a quarter; the rest is for chunks.
constexpr std::uint64_t kListShare = 4;
// Steps that take less than this part of a tensor need not be compared with the tensor itself.
constexpr double kSureShare = 4;

// Bytes of the list after compression, by the ratio that the samples had. Entries that no sample
// met are few, and count uncompressed.
double stored_bytes(const ChangeList& list, const DeltaChange::Estimate& estimate) {
  const auto raw = static_cast<double>(list.entry_bytes());
  return estimate.list_raw > 0 ? raw * std::min(1.0, estimate.list / estimate.list_raw) : raw;
}

// Turns a plan of what comes out into one of what is stored; the length stays for the caller to
// change.
void become(container::TensorPlan& plan, Encoding encoding, const BaseTensor& base) {
  format::DeltaTensor out{};
  out.encoding = plan.spec.encoding;
  out.flags = plan.spec.wide_indices ? std::uint8_t{1} : std::uint8_t{0};
  out.logical_length = plan.logical_length;
  out.nnz = plan.spec.nnz;
  out.base_content_hash = base.digest().hash;
  plan.delta = std::make_unique<format::DeltaTensor>(out);
  plan.spec.encoding = encoding;
  plan.spec.nnz = 0;
  plan.spec.wide_indices = false;
}

// The digest is that of what comes out; the store computes that of the stored bytes.
void set_digest(container::TensorPlan& plan, const integrity::ContentDigest& digest) {
  plan.delta->crc32 = digest.crc32;
  plan.delta->content_hash = digest.hash;
}

Digest128 hash_of_result(const container::TensorPlan& plan) {
  return plan.delta ? plan.delta->content_hash : plan.digest.hash;
}

}  // namespace

void DeltaTensorWriter::store(std::uint32_t id, const KeyedTensor& source) {
  store_against_base(id, source);
  const container::TensorPlan& plan = plan_.tensors[id];
  const std::optional<Digest128>& hash = source.tensor->content_hash;
  // A given content hash is held against what was stored. There is nothing to check of no bytes,
  // and what a threshold leaves is not what was given.
  if (!hash || (plan.delta ? options_.loss.threshold > 0 : plan.logical_length == 0)) return;
  if (plan.spec.encoding == Encoding::low_rank_delta) return;  // nor what low rank leaves
  if (hash_of_result(plan) != *hash) {
    throw IntegrityError(ErrorCode::checksum_mismatch,
                         "the tensor's bytes are not those of its content hash",
                         {.section = "payload", .field = "content_hash"});
  }
}

void DeltaTensorWriter::store_against_base(std::uint32_t id, const KeyedTensor& source) {
  const container::TensorPlan& plan = plan_.tensors[id];
  const TensorLayout layout = plan.spec.layout();
  const std::unique_ptr<BaseTensor> base = base_.find(source.key);
  const bool based = base && can_be_fitted(base->layout(), layout);
  const bool alike = based && base->layout() == layout;
  const auto& hash = source.tensor->content_hash;
  // The given hash alone decides: the tensor is not even opened, and an unchanged state costs no
  // reading.
  if (alike && hash == base->digest().hash) return store_same(id, *base);
  if (alike && plan.logical_length == 0) return store_same(id, *base);
  const auto now = open_tensor_bytes(*source.tensor, plan.logical_length);
  if (base && !based) ++result_.unlike;
  if (!based || now->size() == 0) return store_whole(id, *now);
  if (base->layout().dtype != layout.dtype) ++result_.converted;
  store_change(id, source, *now, alike && !hash, *base);
}

void DeltaTensorWriter::store_same(std::uint32_t id, const BaseTensor& base) {
  container::TensorPlan& plan = plan_.tensors[id];
  become(plan, Encoding::same_as_base, base);
  set_digest(plan, base.digest());
  if (!base.crc32()) format::make_brief(*plan.delta);
  plan.logical_length = 0;
  plan.streamed = false;
  plan.digest = integrity::content_digest({}, 1);
  ++result_.same;
}

void DeltaTensorWriter::store_whole(std::uint32_t id, const PartwiseBytes& now) {
  ++result_.whole;
  changed_.insert(id);
  const std::uint64_t size = now.size();
  struct Piece {
    std::vector<std::byte> buffer;
    ByteSpan bytes;
  };
  for_each_in_order<Piece>(
      size / DeltaChange::kPiece + (size % DeltaChange::kPiece != 0), options_.save.work.threads,
      [&](std::size_t i, Piece& piece) {
        const std::uint64_t begin = i * DeltaChange::kPiece;
        piece.bytes = now.part(begin, std::min(DeltaChange::kPiece, size - begin), piece.buffer);
      },
      [&](const Piece& piece) { write(id, piece.bytes); });
}

// Samples say which ways are worth a try; the true size of a list is known only when it has been
// counted.
void DeltaTensorWriter::store_change(std::uint32_t id, const KeyedTensor& source,
                                     const PartwiseBytes& now, bool may_be_same, BaseTensor& base) {
  const TensorSpec& spec = plan_.tensors[id].spec;
  const bool dense = spec.encoding == Encoding::dense;
  const bool lossy =
      options_.loss.threshold > 0 && dense && has_threshold(spec.dtype) && may_keep_base(source);
  const bool listable = dense && !dtype_is_packed(spec.dtype);
  const unsigned width = listable ? dtype_bits(spec.dtype) / 8 : 1;
  // A base of the same layout is held against its digest in the pass that compares it.
  const bool alike = base.layout() == spec.layout();
  const auto fit =
      fitted(alike ? base.open_unchecked() : base.open(), base.layout(), spec.layout());
  const DeltaChange change(now, *fit, {lossy ? options_.loss.threshold : 0, spec.dtype}, options_);
  if (may_be_same && !lossy) {
    // Only the digest of all bytes makes it certain; samples say whether it is worth the pass.
    // Where the base has to be decoded they are dearer than the digest, so that the first is looked
    // at in a large tensor, and none in a small one.
    const bool is_dear = now.is_at_hand() && !fit->is_at_hand();
    const bool likely = !is_dear ? !change.samples_differ()
                                 : now.size() < kLargeTensor || !change.first_sample_differs();
    if (likely && digest_of(now, options_.save.work.threads, options_.save.work.cancel).hash ==
                      base.digest().hash)
      return store_same(id, base);
  }
  if (dense && alike) {
    const auto kind = codec::step_kind(spec.dtype);
    if (kind && store_steps(id, source, now, change, *kind, base)) return;
  }
  const DeltaChange::Estimate estimate = change.estimate(width);
  const double least = std::min(estimate.difference, estimate.whole);
  if (alike && store_low_rank(id, source, now, base, std::min(least, estimate.list))) return;
  if (lossy || (listable && estimate.list <= kListSlack * least)) {
    // Never more than the tensor itself, plus one so that a list of equal size still counts as
    // complete.
    const double most =
        std::min(kListSlack * estimate.list_raw + kSmallList, static_cast<double>(now.size()) + 1);
    const ChangeList list(change, width, listable ? static_cast<std::uint64_t>(most) : 0,
                          kept_bytes(), base.needs_check());
    if (base.needs_check()) base.check(list.base_hash());
    // Under a threshold a changed tensor may come out as the base's.
    if (alike && list.digest().hash == base.digest().hash) return store_same(id, base);
    if (list.is_complete() && stored_bytes(list, estimate) <= least)
      return store_list(id, list, base);
  }
  if (estimate.whole <= estimate.difference) return store_whole(id, now);
  store_difference(id, change, base);
}

// Under a threshold.
bool DeltaTensorWriter::may_keep_base(const KeyedTensor& source) const {
  const QuantizationTarget target = target_of(source);
  return is_weights(likely_role(target.role, target.name, target.shape.rank())) &&
         !is_excluded(target, options_);
}

bool DeltaTensorWriter::store_low_rank(std::uint32_t id, const KeyedTensor& source,
                                       const PartwiseBytes& now, BaseTensor& base,
                                       double most_bytes) {
  container::TensorPlan& plan = plan_.tensors[id];
  if (!may_be_low_rank(source, options_)) return false;
  std::vector<std::byte> buffers[2];
  const auto old = base.open();
  const auto change =
      low_rank_change(plan.spec.dtype, plan.spec.shape, old->part(0, old->size(), buffers[0]),
                      now.part(0, now.size(), buffers[1]), *options_.loss.low_rank, generation_,
                      options_.save.work.threads);
  if (!change || static_cast<double>(change->payload.size()) >= most_bytes) return false;
  become(plan, Encoding::low_rank_delta, base);
  set_digest(plan, integrity::content_digest(change->result, options_.save.work.threads));
  plan.logical_length = change->payload.size();
  write(id, change->payload);
  result_.low_rank.push_back(change->report);
  result_.low_rank.back().region = source.key.region;
  result_.low_rank.back().name = source.key.name;
  changed_.insert(id);
  return true;
}

void DeltaTensorWriter::store_list(std::uint32_t id, const ChangeList& list,
                                   const BaseTensor& base) {
  container::TensorPlan& plan = plan_.tensors[id];
  const auto parts = *format::sparse_delta_parts(plan.spec.dtype, plan.spec.shape, list.count());
  become(plan, Encoding::sparse_delta, base);
  set_digest(plan, list.digest());
  plan.spec.nnz = list.count();
  plan.logical_length = parts.length;
  const auto write_bytes = [&](ByteSpan bytes) { write(id, bytes); };
  write_bytes(as_byte_span(list.pointers()));
  list.write_positions(write_bytes);
  const std::uint64_t end = parts.positions.offset + parts.positions.length;
  // Padding before the values, less than one element.
  write_bytes(container::zero_bytes().first(parts.values.offset - end));
  list.write_values(write_bytes);
  ++result_.lists;
  result_.listed_elements += list.count();
  changed_.insert(id);
}

void DeltaTensorWriter::store_difference(std::uint32_t id, const DeltaChange& change,
                                         BaseTensor& base) {
  container::TensorPlan& plan = plan_.tensors[id];
  become(plan, Encoding::xor_base, base);
  const bool with_base = base.needs_check();
  std::vector<integrity::PieceDigest> digests(change.pieces());
  std::vector<Digest128> base_hashes(with_base ? change.pieces() : 0);
  for_each_in_order(
      change.pieces(), options_.save.work.threads, differences_,
      [&](std::size_t i, Difference& piece) {
        change.read_piece(i, piece.pair);
        piece.bytes.resize(piece.pair.now.size());
        DeltaChange::Hasher hasher(piece.pair, with_base);
        integrity::PieceHasher stored;
        while (hasher.done() < piece.bytes.size()) {
          const std::size_t at = hasher.done();
          const std::size_t length = std::min(kCached, piece.bytes.size() - at);
          const ByteSpan from = piece.pair.base.subspan(at, length);
          const ByteSpan to = piece.pair.now.subspan(at, length);
          const MutableByteSpan part = MutableByteSpan(piece.bytes).subspan(at, length);
          const bool differs = std::memcmp(from.data(), to.data(), length) != 0;
          if (differs) {
            xor_of(from, to, part);
          } else {
            std::memset(part.data(), 0, length);
          }
          hasher.update(length, differs);
          stored.update(part);
        }
        hasher.finish(digests[i], with_base ? &base_hashes[i] : nullptr);
        piece.digest = stored.finish();
      },
      [&](Difference& piece) { store_.write(id, piece.bytes, piece.digest); });
  if (with_base) base.check(integrity::xxh3_128(as_byte_span(base_hashes)));
  set_digest(plan, integrity::join_pieces(digests));
  ++result_.differences;
  changed_.insert(id);
}

// What steps take is known from a count of all, and not only from samples. False: another way takes
// less.
bool DeltaTensorWriter::store_steps(std::uint32_t id, const KeyedTensor& source,
                                    const PartwiseBytes& now, const DeltaChange& change,
                                    const codec::StepKind& kind, BaseTensor& base) {
  container::TensorPlan& plan = plan_.tensors[id];
  StepChange steps(change, kind, base.needs_check());
  if (base.needs_check()) base.check(steps.base_hash());
  if (steps.digest().hash == base.digest().hash) {
    store_same(id, base);
    return true;
  }
  const auto bytes = static_cast<double>(steps.expected_bytes());
  if (store_low_rank(id, source, now, base, bytes)) return true;
  // As it is before compression, which finds little in a few elements.
  const auto list = format::sparse_delta_parts(plan.spec.dtype, plan.spec.shape, steps.changed());
  if (list && static_cast<double>(list->length) < bytes) return false;
  // Weights never become much smaller by themselves.
  if (bytes * kSureShare > static_cast<double>(now.size())) {
    const DeltaChange::Estimate other = change.estimate(kind.bytes);
    if (std::min(other.whole, other.difference) < bytes) return false;
  }
  become(plan, Encoding::step_delta, base);
  plan.codec = Codec::none;
  set_digest(plan, steps.digest());
  plan.logical_length = steps.encode(kept_bytes());
  steps.write([&](ByteSpan part) { write(id, part); });
  ++result_.steps;
  changed_.insert(id);
  return true;
}

std::uint64_t DeltaTensorWriter::kept_bytes() const {
  return options_.save.work.memory_bytes.value_or(kDefaultMemoryBytes) / kListShare;
}

void DeltaTensorWriter::write(std::uint32_t id, ByteSpan bytes) {
  if (!bytes.empty()) store_.write(id, bytes);
}

}  // namespace thalia::state
