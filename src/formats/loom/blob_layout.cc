#include "formats/loom/blob_layout.h"

#include <charconv>

namespace thalia::formats::loom {
namespace {

// Weights of one matrix of a layer, by the key that its path ends with.
std::optional<std::uint64_t> matrix_count(std::string_view path, const LoomLayer& layer) {
  const std::string_view key = path.substr(path.rfind('.') + 1);
  unsigned number = 0;
  if (std::from_chars(key.data(), key.data() + key.size(), number).ec != std::errc{})
    return std::nullopt;
  std::int64_t rows = 0, cols = 0;
  if (layer.type == LoomLayerType::swiglu && number >= 100 && number <= 102) {
    rows = layer.input_height, cols = layer.output_height;
  } else if (layer.type == LoomLayerType::multi_head_attention && number >= 200 && number <= 203) {
    const bool query = number == 200 || number == 203;
    rows = layer.d_model;
    cols = query ? layer.query_dim : layer.num_kv_heads;
    if (!query && __builtin_mul_overflow(cols, layer.head_dim, &cols)) return std::nullopt;
  }
  std::uint64_t count = 0;
  if (rows <= 0 || cols <= 0 || __builtin_mul_overflow(rows, cols, &count)) return std::nullopt;
  return count;
}

}  // namespace

BlobLayout layout_of(const BlobRecord& blob) {
  const auto bytes = [&](std::string type) {
    return BlobLayout{.layout = {.dtype = DType::u8, .shape = {blob.length}},
                      .type = std::move(type)};
  };
  if (blob_kind(blob.path) != BlobKind::weights) return bytes(blob.dtype);
  const LoomDType stored = blob.native ? parse_loom_dtype(blob.dtype) : LoomDType::float32;
  const auto dtype = loom_dtype_as_thalia(stored);
  const unsigned width = loom_element_bytes(stored);
  if (!dtype || blob.length % width != 0) return bytes(std::string(loom_dtype_name(stored)));
  return {.layout = {.dtype = *dtype, .shape = {blob.length / width}}, .type = {}};
}

std::uint64_t restored_count(const BlobRecord& blob, const LoomLayer* layer, std::uint64_t there) {
  if (layer == nullptr) return there;
  const auto counted = blob_kind(blob.path) == BlobKind::q4_0 ? matrix_count(blob.path, *layer)
                                                              : loom_weight_count(*layer);
  return counted && *counted > 0 && *counted <= there ? *counted : there;
}

std::optional<LoomDType> float_type(DType dtype) noexcept {
  for (const LoomDType type :
       {LoomDType::float64, LoomDType::float32, LoomDType::float16, LoomDType::bfloat16})
    if (loom_dtype_as_thalia(type) == dtype) return type;
  return std::nullopt;
}

}  // namespace thalia::formats::loom
