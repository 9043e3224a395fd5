// How one tensor is stored, and the piece of work that a thread does for it. A plan is made on the
// caller's thread and does not change until all jobs of its tensor are done; threads only read it,
// except for the digest, which has its own lock.
#include "formats/mckp/job.h"

#include <algorithm>
#include <utility>

#include "codec/lossy/quantize.h"
#include "formats/mckp/block.h"
#include "formats/mckp/content_hash_list.h"
#include "integrity/content_hash.h"
#include "state/delta/change.h"
#include "state/delta/partwise_bytes.h"
#include "state/delta/step_change.h"
#include "state/low_rank/low_rank_change.h"
#include "state/precision/glob.h"
#include "state/quantize/quantizer.h"
#include "thalia/types.h"

namespace thalia::formats {

// Hashes a tensor beside its compression. What is hashed are the bytes that a reader will restore,
// so quantized elements are quantized and restored here once more; the loss of that is measured on
// the way. Parts are of 1 MiB, so elements of types that can be quantized stay whole.

namespace {

constexpr std::uint64_t kPart = 1 << 20;
// How much of SHA-256 a thread does for each piece. Twice the piece, because threads that find
// another one at it do none.
constexpr std::uint64_t kShare = 2;

// What a part of a tensor will be restored to.
class RestoredPart {
 public:
  ByteSpan of(const MckpTensor& tensor, ByteSpan part, codec::QuantizationLoss& loss) {
    if (!tensor.method.quantized) return part;
    const codec::UniformScale scale{.minimum = tensor.quantization->minimum,
                                    .scale = tensor.quantization->scale};
    codes_.resize(part.size() / (dtype_bits(tensor.dtype) / 8));
    restored_.resize(part.size());
    codec::quantize(tensor.dtype, part, tensor.quantization->bits, scale, codes_);
    codec::dequantize(tensor.dtype, codes_, scale, restored_);
    codec::measure_quantization(tensor.dtype, part, restored_, loss);
    return restored_;
  }

 private:
  std::vector<std::uint8_t> codes_;
  std::vector<std::byte> restored_;
};

ByteSpan part_at(ByteSpan raw, std::uint64_t begin, std::uint64_t end) {
  return raw.subspan(begin, std::min(kPart, end - begin));
}

}  // namespace

MckpDigest::MckpDigest(LeafAlgorithm algorithm, std::uint64_t raw_bytes) : algorithm_(algorithm) {
  if (algorithm_ == LeafAlgorithm::xxh3_128)
    pieces_.resize(raw_bytes / kPart + (raw_bytes % kPart != 0 ? 1 : 0));
}

void MckpDigest::advance(const MckpTensor& tensor, ByteSpan raw, std::uint64_t begin,
                         std::uint64_t end) {
  if (algorithm_ == LeafAlgorithm::sha256) {
    // Never waits: anybody who holds the lock goes on, and finish() does what is left.
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock) hash_in_order(tensor, raw, hashed_ + kShare * (end - begin));
    return;
  }
  RestoredPart restored;
  codec::QuantizationLoss loss;
  for (; begin < end; begin += kPart) {
    const ByteSpan part = restored.of(tensor, part_at(raw, begin, end), loss);
    // No lock: each part is in one call, so each element is written by one thread.
    pieces_[begin / kPart] = integrity::xxh3_128(part);
  }
  const std::lock_guard lock(mutex_);
  loss_.largest_error = std::max(loss_.largest_error, loss.largest_error);
}

Digest256 MckpDigest::finish(const MckpTensor& tensor, ByteSpan raw) {
  if (algorithm_ == LeafAlgorithm::sha256) {
    hash_in_order(tensor, raw, raw.size());
    return sha256_.finish();
  }
  return tensor_digest(integrity::xxh3_128(std::as_bytes(std::span(pieces_))));
}

void MckpDigest::hash_in_order(const MckpTensor& tensor, ByteSpan raw, std::uint64_t end) {
  RestoredPart restored;
  end = std::min<std::uint64_t>(end, raw.size());
  while (hashed_ < end) {
    // Always whole parts, so that elements stay whole.
    const ByteSpan part = part_at(raw, hashed_, raw.size());
    sha256_.update(restored.of(tensor, part, loss_));
    hashed_ += part.size();
  }
}

namespace {

std::optional<MckpQuantization> quantization_of(std::string_view name, const Tensor& tensor,
                                                const MckpWriteOptions& options) {
  if (!options.quantization || !tensor.is_dense() ||
      !mckp_quantizes(name, tensor, *options.quantization))
    return std::nullopt;
  const auto own = options.quantization->bits_of.find(name);
  const unsigned bits =
      own == options.quantization->bits_of.end() ? options.quantization->bits : own->second;
  // No scale where an element is not finite: such a tensor is stored exactly.
  const auto scale = codec::uniform_scale(tensor.dtype(), tensor.bytes(), bits);
  if (!scale) return std::nullopt;
  return MckpQuantization{.bits = bits, .minimum = scale->minimum, .scale = scale->scale};
}

// What of a tensor differs from its base, in bytes: no exact delta takes much less.
std::uint64_t changed_bytes(ByteSpan base, ByteSpan now) {
  std::uint64_t changed = 0;
  for (std::size_t i = 0; i < now.size(); ++i) changed += base[i] != now[i] ? 1 : 0;
  return changed;
}

// nullopt where the tensor is to be stored exactly. It is whole in memory, and so is its base.
std::optional<state::LowRankChange> low_rank_of(const std::string& name, const Tensor& tensor,
                                                const Tensor& base, const MckpWriteOptions& options,
                                                state::LossyGeneration generation) {
  if (!options.low_rank || tensor.shape().rank() != 2 || !mckp_can_quantize(tensor.dtype()) ||
      !tensor.is_dense())
    return std::nullopt;
  const QuantizationTarget target{.path = name,
                                  .region = {},
                                  .name = name,
                                  .role = Role::weights,
                                  .dtype = tensor.dtype(),
                                  .shape = tensor.shape()};
  if (!state::is_chosen(target, options.low_rank->min_elements, options.low_rank->include, {}))
    return std::nullopt;
  auto change = state::low_rank_change(tensor.dtype(), tensor.shape(), base.bytes(), tensor.bytes(),
                                       *options.low_rank, generation, options.work.threads);
  if (change && change->payload.size() >= changed_bytes(base.bytes(), tensor.bytes()))
    return std::nullopt;
  return change;
}

// The payload of a delta of steps; nullopt where a difference may take less, or nothing is to be
// compressed.
std::optional<std::vector<std::byte>> steps_of(const Tensor& tensor, const Tensor& base,
                                               Codec codec, const MckpWriteOptions& options) {
  const auto kind = codec::step_kind(tensor.dtype());
  if (!kind || !tensor.is_dense() || codec == Codec::none) return std::nullopt;
  const state::TensorBytes now(tensor), before(base);
  const DeltaOptions delta{.save = {.work = options.work}};
  const state::DeltaChange change(now, before, {0, tensor.dtype()}, delta);
  state::StepChange steps(change, *kind);
  if (steps.expected_bytes() > tensor.bytes().size() / 2) return std::nullopt;
  std::vector<std::byte> out;
  out.reserve(steps.encode(tensor.bytes().size()));
  steps.write([&](ByteSpan part) { out.insert(out.end(), part.begin(), part.end()); });
  return out;
}

}  // namespace

// As quantize does: what an optimizer keeps, and what is small, stays exact.
bool mckp_quantizes(std::string_view name, const Tensor& tensor,
                    const MckpQuantizationOptions& options) {
  const auto fits = [&](const std::string& pattern) { return state::matches_path(pattern, name); };
  return mckp_can_quantize(tensor.dtype()) &&
         is_weights(role_of_name(name, tensor.shape().rank())) &&
         std::none_of(options.exclude.begin(), options.exclude.end(), fits);
}

std::shared_ptr<MckpWork> plan_mckp_tensor(std::string name, Tensor tensor,
                                           std::optional<Tensor> base,
                                           const MckpWriteOptions& options,
                                           state::LossyGeneration generation) {
  auto work = std::make_shared<MckpWork>(options.header.content_digests, tensor.bytes().size());
  MckpTensor& stored = work->stored;
  stored.dtype = tensor.dtype();
  stored.shape = tensor.shape();
  stored.original_size = tensor.bytes().size();
  stored.method.codec = codec_of(options);
  stored.quantization = quantization_of(name, tensor, options);
  stored.method.quantized = stored.quantization.has_value();
  if (!tensor.is_dense()) {
    stored.sparse = {.encoding = tensor.encoding(),
                     .nnz = tensor.nnz(),
                     .wide_indices = tensor.layout().wide_indices};
    stored.method.sparse = true;
  }
  stored.name = std::move(name);
  const bool fits = base && base->layout() == tensor.layout() && !tensor.bytes().empty();
  if (fits && !stored.method.quantized) {
    if (auto change = low_rank_of(stored.name, tensor, *base, options, generation)) {
      stored.method = {.delta = true, .low_rank = true};
      stored.compressed_size = change->payload.size();
      work->payload = std::move(change->payload);
      work->largest_error = change->report.max_error;
      const auto result = std::make_shared<const std::vector<std::byte>>(std::move(change->result));
      work->tensor = Tensor::adopt(tensor.layout(), *result, result);
      return work;
    }
    if (auto steps = steps_of(tensor, *base, stored.method.codec, options)) {
      stored.method = {.delta = true, .steps = true};
      stored.compressed_size = steps->size();
      work->payload = *std::move(steps);
      work->tensor = std::move(tensor);
      return work;
    }
    stored.method.delta = true;
    work->base = *std::move(base);
  }
  // A difference is mostly zeros, and so are the upper bytes of indices. Codecs that look at
  // exponents find none in them, zstd finds the runs.
  if ((stored.method.delta || stored.method.sparse) && stored.method.codec != Codec::lz4 &&
      stored.method.codec != Codec::none)
    stored.method.codec = Codec::zstd;
  const bool groups = stored.method.codec == Codec::zstd || stored.method.codec == Codec::lz4;
  if (options.byte_grouping && groups && !stored.method.quantized)
    stored.method.plane_width = mckp_plane_width(stored.dtype);
  // A stored difference saves nothing and would only need its base.
  if (stored.method.codec == Codec::none) stored.method.delta = false;
  work->tensor = std::move(tensor);
  return work;
}

void MckpJob::run(int level) {
  MckpWork& work = *tensor;
  const ByteSpan raw = work.tensor.bytes();
  if (work.stored.method.low_rank || work.stored.method.steps) {
    const ByteSpan piece = ByteSpan(work.payload).subspan(begin, end - begin);
    out.assign(piece.begin(), piece.end());
    if (begin == 0) work.digest.advance(work.stored, raw, 0, raw.size());
    return;
  }
  const ByteSpan base = work.stored.method.delta ? work.base.bytes() : ByteSpan();
  encode_mckp_piece(work.stored, level, raw, base, begin, end, out);
  // An empty tensor has one empty piece, which is its block, and nothing to hash.
  if (end == begin) return;
  const auto [first, count] = mckp_raw_range(work.stored, begin, end - begin);
  work.digest.advance(work.stored, raw, first, first + count);
}

}  // namespace thalia::formats
