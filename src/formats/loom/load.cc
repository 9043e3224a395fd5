// What the original does when it loads a file. It indexes past the end of arrays, or leaves random
// numbers in weights, where a file is not as its layers say: here these are errors.
#include "formats/loom/load.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/loom/morph.h"
#include "formats/loom/weights.h"
#include "io/memory/allocation_limit.h"
#include "thalia/formats/loom.h"

namespace thalia::formats::loom {
namespace {

[[noreturn]] void fail_weights(ErrorCode code, std::string message, std::uint64_t value,
                               std::string bound) {
  throw FormatError(
      code, std::move(message),
      {.field = "weights", .value = std::to_string(value), .bound = std::move(bound)});
}

// f32 have to be whole; of other types the original drops what is left over.
std::uint64_t whole_elements(LoomDType dtype, std::uint64_t length) {
  const unsigned width = loom_element_bytes(dtype);
  if (dtype == LoomDType::float32 && length % width != 0)
    fail_weights(ErrorCode::bad_value, "no whole f32", length, "a multiple of 4 bytes");
  return length / width * width;
}

void cut_to_whole_elements(LoomDType dtype, ByteSpan& bytes) {
  bytes = bytes.first(whole_elements(dtype, bytes.size()));
}

// Where the original would index past its array.
bool refuses_more(LoomDType dtype) noexcept {
  return dtype == LoomDType::float64 || dtype == LoomDType::float16 || dtype == LoomDType::bfloat16;
}

// f32 weights become native ones.
void load_master(LoomWeights& weights) {
  cut_to_whole_elements(LoomDType::float32, weights.master.bytes);
  if (weights.dtype == LoomDType::float32) {
    weights.native = std::exchange(weights.master, {});
    return;
  }
  LoomNative native = morph(weights.dtype, weights.master.bytes, weights.scale);
  weights.scale = native.scale;
  weights.native = owned_bytes(std::move(native.packed));
}

bool has_no_weights(LoomLayerType type) noexcept {
  return type == LoomLayerType::softmax || type == LoomLayerType::parallel ||
         type == LoomLayerType::sequential || type == LoomLayerType::residual ||
         type == LoomLayerType::metacognition;
}

// How many bytes of a layer's weights count, after a check that they are enough.
std::uint64_t usable_length(const LoomLayer& layer, const WeightBytes& weights) {
  if (has_no_weights(layer.type)) {
    throw FormatError(ErrorCode::inconsistent, "layers of this type have no weights",
                      {.field = "weights", .value = std::string(loom_name(layer.type))});
  }
  const LoomDType stored = weights.native ? weights.dtype : LoomDType::float32;
  const std::uint64_t length = whole_elements(stored, weights.length);
  const std::uint64_t count = counted_weights(layer);
  const std::uint64_t there = loom_element_count(stored, length);
  if (there < count) {
    fail_weights(ErrorCode::inconsistent, "fewer weights than the layer has", there,
                 std::to_string(count));
  }
  if (weights.native && there > count && refuses_more(stored)) {
    fail_weights(ErrorCode::inconsistent, "more weights than the layer has", there,
                 std::to_string(count));
  }
  return weights.native && stored == LoomDType::float32 ? count * sizeof(float) : length;
}

WeightBytes bytes_of(const LoomWeights& weights) {
  const bool native = !weights.native.bytes.empty();
  return {.dtype = weights.dtype,
          .native = native,
          .length = (native ? weights.native : weights.master).bytes.size()};
}

void load_weights(LoomLayer& layer) {
  if (!layer.weights) return;
  LoomWeights& weights = *layer.weights;
  if (weights.native.bytes.empty() && weights.master.bytes.empty()) {
    layer.weights.reset();
    return;
  }
  const std::uint64_t length = usable_length(layer, bytes_of(weights));
  if (weights.native.bytes.empty()) {
    load_master(weights);
  } else {
    weights.native.bytes = weights.native.bytes.first(length);
  }
}

template <typename Call>
void visit_inner(LoomLayer& layer, const std::string& path, const Call& call) {
  const auto visit = [&](std::vector<LoomLayer>& list, std::string_view name) {
    for (std::size_t i = 0; i < list.size(); ++i)
      call(list[i], fmt::format("{}.{}.{}", path, name, i));
  };
  visit(layer.parallel_branches, "parallel_branches");
  visit(layer.sequential_layers, "sequential_layers");
  for (LoomLayer& observed : layer.meta_observed_layer)
    call(observed, path + ".meta_observed_layer");
}

void load_layer(LoomLayer& layer, const std::string& path, bool inner) {
  if (inner) layer.z = layer.y = layer.x = layer.l = 0;
  fill_loom_defaults(layer);
  with_tensor(path, [&] { load_weights(layer); });
  visit_inner(layer, path,
              [](LoomLayer& one, const std::string& at) { load_layer(one, at, true); });
}

std::vector<LoomLayer> empty_grid(const LoomNetwork& network, std::uint64_t cells) {
  std::vector<LoomLayer> grid(cells);
  std::size_t i = 0;
  for (std::int64_t z = 0; z < network.depth && cells != 0; ++z)
    for (std::int64_t y = 0; y < network.rows; ++y)
      for (std::int64_t x = 0; x < network.cols; ++x)
        for (std::int64_t l = 0; l < network.layers_per_cell; ++l, ++i) {
          grid[i].z = z, grid[i].y = y, grid[i].x = x, grid[i].l = l;
          grid[i].activation = LoomActivation::relu;
        }
  return grid;
}

// A component's blocks are checked here, so that anybody who has the network can rely on them.
void put_component(LoomLayer& layer, std::string_view suffix, const BlobRecord& blob,
                   StoredBytes bytes) {
  if (suffix.starts_with("q4_0.")) {
    static_cast<void>(loom_q4_0_blocks(bytes.bytes));
    layer.dtype = LoomDType::int4;
  } else if (suffix.starts_with("bitnet_ternary.")) {
    static_cast<void>(loom_bitnet_facts(bytes.bytes));
    layer.dtype = LoomDType::ternary;
  }
  layer.components.push_back({.suffix = std::string(suffix),
                              .dtype = blob.dtype,
                              .scale = blob.scale,
                              .native = blob.native,
                              .bytes = std::move(bytes)});
}

// The packed bytes of f32 weights that become another type.
std::optional<std::uint64_t> quantised_bytes(const BlobRecord& blob, std::string_view suffix) {
  const LoomDType dtype = parse_loom_dtype(blob.dtype);
  if (blob.native || !suffix.empty() || dtype == LoomDType::float32) return std::nullopt;
  return loom_packed_bytes(dtype, blob.length / sizeof(float));
}

void put_blob(LoomLayer& layer, const BlobRecord& blob, StoredBytes bytes) {
  LoomWeights weights{.dtype = parse_loom_dtype(blob.dtype), .scale = blob.scale};
  layer.dtype = weights.dtype;
  if (blob.native) {
    cut_to_whole_elements(weights.dtype, bytes.bytes);
    weights.native = std::move(bytes);
  } else {
    weights.master = std::move(bytes);
    load_master(weights);
  }
  layer.weights = std::move(weights);
}

}  // namespace

void check_weights(const LoomLayer& stored, const WeightBytes& weights) {
  // Counts depend on what is filled in, and not on the layers within.
  LoomLayer layer{.type = stored.type};
  layer.input_height = stored.input_height, layer.output_height = stored.output_height;
  layer.input_channels = stored.input_channels, layer.filters = stored.filters;
  layer.kernel_size = stored.kernel_size, layer.d_model = stored.d_model;
  layer.num_heads = stored.num_heads, layer.num_kv_heads = stored.num_kv_heads;
  layer.head_dim = stored.head_dim, layer.query_dim = stored.query_dim;
  layer.vocab_size = stored.vocab_size, layer.embedding_dim = stored.embedding_dim;
  layer.num_clusters = stored.num_clusters;
  fill_loom_defaults(layer);
  static_cast<void>(usable_length(layer, weights));
}

void check_weights(const LoomLayer& layer) {
  if (!layer.weights) return;
  const WeightBytes weights = bytes_of(*layer.weights);
  if (weights.length != 0) check_weights(layer, weights);
}

LoomNetwork load_checkpoint(LoomNetwork&& network, const ReadLimits& limits,
                            std::uint64_t stored_bytes) {
  const std::uint64_t cells = grid_cells(network, limits, stored_bytes);
  std::vector<LoomLayer> grid = empty_grid(network, cells);
  std::vector<bool> seen(cells);
  for (LoomLayer& layer : network.layers) {
    const std::uint64_t place = grid_place(network, layer);
    const std::string path = fmt::format("layers.{}", place);
    if (seen[place]) {
      throw FormatError(ErrorCode::inconsistent, "two layers at one place of the grid",
                        {.field = "layers", .value = path});
    }
    seen[place] = true;
    load_layer(layer, path, false);
    grid[place] = std::move(layer);
  }
  network.layers = std::move(grid);
  return std::move(network);
}

LoomNetwork load_entity(const Document& document, const ReadLimits& limits,
                        std::uint64_t stored_bytes,
                        const std::function<bool(std::uint64_t layer)>& wanted,
                        const std::function<StoredBytes(std::size_t blob)>& bytes_of) {
  LoomNetwork network = load_checkpoint(LoomNetwork(document.network), limits, stored_bytes);
  io::MemoryBudget budget(limits, stored_bytes);
  for (std::size_t i = 0; i < document.blobs.size(); ++i) {
    const BlobRecord& blob = document.blobs[i];
    if (!blob.path.starts_with("layers.")) continue;
    const FoundLayer found = find_layer(network, blob.path);
    if (found.layer == nullptr) {
      throw FormatError(ErrorCode::inconsistent, "a blob of a layer that is not there",
                        {.section = "header", .field = "blobs", .value = printable(blob.path)});
    }
    if (!wanted(found.index)) continue;
    LoomLayer& layer = *find_own_layer(network, blob.path);
    with_tensor(printable(blob.path), [&] {
      // Blobs may overlap, so all of them may be far more than the file.
      if (const auto bytes = quantised_bytes(blob, found.suffix)) budget.take("blobs", *bytes);
      if (found.suffix.empty()) {
        put_blob(layer, blob, bytes_of(i));
      } else {
        put_component(layer, found.suffix, blob, bytes_of(i));
      }
    });
  }
  return network;
}

namespace {

// The layers of a block are a norm, attention, a norm and SwiGLU; the first of four is float32.
std::string inferred_dtype(const std::vector<BlobRecord>& blobs) {
  const auto any = [&](std::string_view part) {
    for (const BlobRecord& blob : blobs)
      if (blob.path.find(part) != std::string::npos) return true;
    return false;
  };
  if (any(".q4_0.")) return "int4";
  if (any(".bitnet_ternary.")) return "ternary";
  for (const BlobRecord& blob : blobs) {
    std::uint64_t layer = 0;
    const std::string_view path = blob.path;
    if (!blob.native || !path.starts_with("layers.")) continue;
    const auto error = std::from_chars(path.data() + 7, path.data() + path.size(), layer).ec;
    const LoomDType dtype = parse_loom_dtype(blob.dtype);
    if (error == std::errc{} && layer % 4 != 0 && dtype != LoomDType::float32)
      return std::string(loom_dtype_name(dtype));
  }
  return "float32";
}

}  // namespace

LoomTransformer load_transformer(const Document& document,
                                 const std::function<StoredBytes(std::size_t blob)>& bytes_of,
                                 bool whole) {
  LoomTransformer transformer = document.network.transformer.value();
  const auto take = [&](std::string_view path, StoredBytes& out, bool needed) {
    for (std::size_t i = 0; i < document.blobs.size(); ++i) {
      if (document.blobs[i].path != path) continue;
      out = bytes_of(i);
      return;
    }
    if (!whole || !needed) return;
    throw FormatError(ErrorCode::inconsistent, "the blob is missing",
                      {.section = "header", .field = "blobs", .value = std::string(path)});
  };
  if (whole && transformer.weight_dtype.empty())
    transformer.weight_dtype = inferred_dtype(document.blobs);
  take("transformer.embeddings", transformer.embeddings, true);
  take("transformer.lm_head", transformer.lm_head, !transformer.lm_head_tied);
  take("transformer.final_norm", transformer.final_norm, transformer.has_final_norm);
  return transformer;
}

}  // namespace thalia::formats::loom
