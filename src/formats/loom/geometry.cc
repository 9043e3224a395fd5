// How many weights a layer has: no file says it, so it follows from the layer's settings.
#include <fmt/format.h>

#include <algorithm>

#include "base/fail.h"
#include "formats/loom/morph.h"
#include "formats/loom/weights.h"
#include "io/memory/allocation_limit.h"

namespace thalia {
namespace formats::loom {
namespace {

// Numbers of a file: their sums and products may pass 2^62, and have no value then.
struct CheckedCount {
  std::uint64_t value = 0;
  bool good = true;

  CheckedCount(std::int64_t field) noexcept  // NOLINT(google-explicit-constructor): a number
      : value(static_cast<std::uint64_t>(field)), good(field >= 0) {}
  friend CheckedCount operator*(CheckedCount a, CheckedCount b) noexcept {
    a.good = a.good && b.good && !__builtin_mul_overflow(a.value, b.value, &a.value);
    return a;
  }
  friend CheckedCount operator+(CheckedCount a, CheckedCount b) noexcept {
    a.good = a.good && b.good && !__builtin_add_overflow(a.value, b.value, &a.value);
    return a;
  }
};

CheckedCount attention_count(const LoomLayer& layer) noexcept {
  const CheckedCount d = layer.d_model, q = layer.query_dim != 0 ? layer.query_dim : layer.d_model;
  const CheckedCount heads = CheckedCount(layer.num_kv_heads) * layer.head_dim;
  const CheckedCount kv = heads.good && heads.value == 0 ? d : heads;
  return q * d + kv * d + kv * d + d * q + q + kv + kv + d;
}

CheckedCount convolution_count(const LoomLayer& layer, unsigned dimensions) noexcept {
  CheckedCount count = CheckedCount(layer.filters) * layer.input_channels;
  for (unsigned i = 0; i < dimensions; ++i)
    count = count * (layer.kernel_size == 0 ? 1 : layer.kernel_size);
  return count;
}

CheckedCount recurrent_count(const LoomLayer& layer) noexcept {
  const CheckedCount in = layer.input_height, out = layer.output_height;
  return in * out + out * out + out;
}

CheckedCount count_of(const LoomLayer& layer) noexcept {
  const CheckedCount in = layer.input_height, out = layer.output_height;
  switch (layer.type) {
    case LoomLayerType::dense:
      return in * out;
    case LoomLayerType::multi_head_attention:
      return attention_count(layer);
    case LoomLayerType::swiglu:
      return CheckedCount(3) * in * out + CheckedCount(2) * out + in;
    case LoomLayerType::rms_norm:
      return in;
    case LoomLayerType::layer_norm:
      return CheckedCount(2) * in;
    case LoomLayerType::cnn1:
    case LoomLayerType::conv_transposed_1d:
      return convolution_count(layer, 1);
    case LoomLayerType::cnn2:
    case LoomLayerType::conv_transposed_2d:
      return convolution_count(layer, 2);
    case LoomLayerType::cnn3:
    case LoomLayerType::conv_transposed_3d:
      return convolution_count(layer, 3);
    case LoomLayerType::rnn:
      return recurrent_count(layer);
    case LoomLayerType::lstm:
      return CheckedCount(4) * recurrent_count(layer);
    case LoomLayerType::embedding:
      return CheckedCount(layer.vocab_size) * layer.embedding_dim;
    case LoomLayerType::kmeans:
      return CheckedCount(layer.num_clusters) * in;
    case LoomLayerType::softmax:
    case LoomLayerType::parallel:
    case LoomLayerType::sequential:
    case LoomLayerType::residual:
    case LoomLayerType::metacognition:
      return 0;
  }
  return 0;
}

}  // namespace

StoredBytes owned_bytes(std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return {.bytes = *owner, .owner = owner};
}

std::uint64_t counted_weights(const LoomLayer& layer) {
  const auto count = loom_weight_count(layer);
  if (!count) {
    throw FormatError(ErrorCode::bad_value, "the layer's fields give no number of weights",
                      {.field = "layers", .value = std::string(loom_name(layer.type))});
  }
  return *count;
}

std::vector<std::byte> master_bytes(const LoomLayer& layer, const ReadLimits& limits) {
  const LoomWeights& weights = *layer.weights;
  const std::uint64_t count = counted_weights(layer);
  const bool has_master = !weights.master.bytes.empty();
  const std::uint64_t there = has_master
                                  ? weights.master.bytes.size() / sizeof(float)
                                  : loom_element_count(weights.dtype, weights.native.bytes.size());
  if (there < count) {
    throw FormatError(
        ErrorCode::inconsistent, "fewer weights than the layer has",
        {.field = "weights", .value = std::to_string(there), .bound = std::to_string(count)});
  }
  const std::uint64_t stored = weights.master.bytes.size() + weights.native.bytes.size();
  io::MemoryBudget budget(limits, stored);
  auto master = budget.vector<std::byte>("weights", count * sizeof(float));
  if (has_master) {
    std::ranges::copy(weights.master.bytes.first(master.size()), master.begin());
    return master;
  }
  unpack_to(weights.dtype, weights.native.bytes, weights.scale, master);
  return master;
}

}  // namespace formats::loom

namespace loom = formats::loom;

std::optional<std::uint64_t> loom_weight_count(const LoomLayer& layer) noexcept {
  const loom::CheckedCount count = loom::count_of(layer);
  if (!count.good || count.value >= (std::uint64_t{1} << 62)) return std::nullopt;
  return count.value;
}

void fill_loom_defaults(LoomLayer& layer) noexcept {
  if (layer.type == LoomLayerType::multi_head_attention) {
    if (layer.head_dim == 0 && layer.num_heads > 0)
      layer.head_dim = layer.d_model / layer.num_heads;
    if (layer.num_kv_heads == 0) layer.num_kv_heads = layer.num_heads;
    if (layer.query_dim == 0) layer.query_dim = layer.d_model;
  }
  if (layer.seq_length <= 0) layer.seq_length = 1;
}

std::vector<float> loom_master(const LoomLayer& layer, const ReadLimits& limits) {
  if (!layer.weights) return {};
  const std::vector<std::byte> bytes = loom::master_bytes(layer, limits);
  return unpack_loom_weights(LoomDType::float32, bytes, 1, bytes.size() / sizeof(float));
}

void set_loom_master(LoomLayer& layer, std::span<const float> master, float scale) {
  const auto count = loom_weight_count(layer);
  if (count != master.size()) {
    fail_argument(ErrorCode::size_mismatch, "master", std::to_string(master.size()),
                  count ? std::to_string(*count) : "a layer with a number of weights");
  }
  LoomNative native = morph_loom_weights(layer.dtype, master, scale);
  const ByteSpan bytes = std::as_bytes(master);
  LoomWeights weights{.dtype = layer.dtype, .scale = native.scale};
  // What .entity files hold of RMSNorm are the weights before they were quantised.
  if (layer.dtype != LoomDType::float32)
    weights.master = loom::owned_bytes({bytes.begin(), bytes.end()});
  weights.native = loom::owned_bytes(std::move(native.packed));
  layer.weights = std::move(weights);
}

}  // namespace thalia
