#include "interop/mckp_job.h"

#include <algorithm>
#include <utility>

#include "codec/quantize.h"
#include "integrity/sha256.h"
#include "interop/mckp_block.h"
#include "model/glob.h"

namespace thalia::interop {
namespace {

using format::Codec;

constexpr std::uint64_t kRestored = 1 << 16;  ///< elements at a time

std::optional<MckpQuantization> quantization_of(std::string_view name, const Tensor& tensor,
                                                const MckpWriteOptions& options) {
  if (!options.quantization || !mckp_can_quantize(tensor.dtype())) return std::nullopt;
  for (const std::string& pattern : options.quantization->exclude)
    if (model::matches_path(pattern, name)) return std::nullopt;
  const unsigned bits = options.quantization->bits;
  const auto scale = codec::uniform_scale(tensor.dtype(), tensor.bytes(), bits);
  if (!scale) return std::nullopt;
  return MckpQuantization{.bits = bits, .minimum = scale->minimum, .scale = scale->scale};
}

// The digest of the numbers that the codes will stand for.
Digest256 restored_digest(const MckpWork& work, double& largest_error) {
  const DType dtype = work.stored.dtype;
  const std::size_t width = dtype_bits(dtype) / 8;
  const codec::UniformScale scale{.minimum = work.stored.quantization->minimum,
                                  .scale = work.stored.quantization->scale};
  integrity::Sha256 hash;
  codec::QuantizationLoss loss;
  std::vector<std::uint8_t> codes;
  std::vector<std::byte> restored;
  for (ByteSpan left = work.tensor.bytes(); !left.empty();) {
    const ByteSpan part = left.first(std::min<std::size_t>(left.size(), kRestored * width));
    left = left.subspan(part.size());
    codes.resize(part.size() / width);
    restored.resize(part.size());
    codec::quantize(dtype, part, work.stored.quantization->bits, scale, codes);
    codec::dequantize(dtype, codes, scale, restored);
    codec::measure_quantization(dtype, part, restored, loss);
    hash.update(restored);
  }
  largest_error = loss.largest_error;
  return hash.finish();
}

}  // namespace

std::shared_ptr<MckpWork> plan_mckp_tensor(std::string name, Tensor tensor,
                                           std::optional<Tensor> base,
                                           const MckpWriteOptions& options) {
  auto work = std::make_shared<MckpWork>();
  MckpTensor& stored = work->stored;
  stored.dtype = tensor.dtype();
  stored.shape = tensor.shape();
  stored.original_size = tensor.bytes().size();
  stored.method.codec = options.codec;
  stored.quantization = quantization_of(name, tensor, options);
  stored.method.quantized = stored.quantization.has_value();
  stored.name = std::move(name);
  const bool fits = base && base->layout() == tensor.layout() && !tensor.bytes().empty();
  if (fits && !stored.method.quantized) {
    stored.method.delta = true;
    work->base = *std::move(base);
    // A difference is mostly zeros, which have no exponents to code.
    if (stored.method.codec != Codec::lz4 && stored.method.codec != Codec::store)
      stored.method.codec = Codec::zstd;
  }
  const bool groups = stored.method.codec == Codec::zstd || stored.method.codec == Codec::lz4;
  if (options.byte_grouping && groups && !stored.method.quantized)
    stored.method.plane_width = mckp_plane_width(stored.dtype);
  if (stored.method.codec == Codec::store) stored.method.delta = false;
  work->tensor = std::move(tensor);
  return work;
}

void MckpJob::run(int level) {
  const MckpWork& work = *tensor;
  if (!digests) {
    const ByteSpan base = work.stored.method.delta ? work.base.bytes() : ByteSpan();
    encode_mckp_piece(work.stored, level, work.tensor.bytes(), base, begin, end, out);
  } else if (work.stored.method.quantized) {
    digest = restored_digest(work, largest_error);
  } else {
    digest = integrity::sha256(work.tensor.bytes());
  }
}

}  // namespace thalia::interop
