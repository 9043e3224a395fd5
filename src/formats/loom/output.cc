// The file that the original would write of a network.
#include <fmt/format.h>

#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/loom/load.h"
#include "formats/loom/morph.h"
#include "formats/loom/weights.h"

namespace thalia::formats::loom {
namespace {

// Native weights of the layer's type: those that it has, or quantised now.
LoomWeights ready_weights(const LoomLayer& layer) {
  const LoomWeights& weights = *layer.weights;
  if (weights.dtype == layer.dtype && weights.has_native()) return weights;
  LoomNative native = morph(layer.dtype, master_bytes(layer, {}), weights.scale);
  return {.dtype = layer.dtype,
          .scale = native.scale,
          .native = owned_bytes(std::move(native.packed)),
          .master = weights.master};
}

void put_blob(BlobRecord record, StoredBytes bytes, OutputNetwork& out) {
  record.length = bytes.bytes.size();
  out.blobs.push_back(std::move(record));
  out.bytes.push_back(std::move(bytes));
}

class Outputs {
 public:
  enum class Kind { checkpoint, entity };
  Outputs(Kind kind, bool scale_before_morph)
      : kind_(kind), scale_before_morph_(scale_before_morph) {}

  OutputNetwork made(const LoomNetwork& network) {
    check_grid(network);
    OutputNetwork output{.network = network, .blobs = {}, .bytes = {}};
    std::uint64_t i = 0;
    for (LoomLayer& layer : output.network.layers) {
      place(layer, network, i);
      put(layer, fmt::format("layers.{}", i), output);
      ++i;
    }
    return output;
  }

 private:
  static void check_grid(const LoomNetwork& network) {
    const std::uint64_t cells = grid_cells(network, {}, 0);
    if (cells == network.layers.size()) return;
    fail_argument(ErrorCode::size_mismatch, "layers", std::to_string(network.layers.size()),
                  fmt::format("{}, the cells of the grid", cells));
  }

  static void place(LoomLayer& layer, const LoomNetwork& network, std::uint64_t i) {
    const auto take = [&i](std::int64_t extent) {
      const auto size = static_cast<std::uint64_t>(extent);
      return static_cast<std::int64_t>(std::exchange(i, i / size) % size);
    };
    layer.l = take(network.layers_per_cell);
    layer.x = take(network.cols);
    layer.y = take(network.rows);
    layer.z = static_cast<std::int64_t>(i);
  }

  void put(LoomLayer& layer, const std::string& path, OutputNetwork& out) {
    if (layer.weights) put_weights(layer, path, out);
    put_components(layer, path, out);
    layer.weights.reset();
    layer.components.clear();
    put_list(layer.parallel_branches, path + ".parallel_branches.", out);
    put_list(layer.sequential_layers, path + ".sequential_layers.", out);
    for (LoomLayer& observed : layer.meta_observed_layer)
      put(observed, path + ".meta_observed_layer", out);
  }

  void put_list(std::vector<LoomLayer>& list, const std::string& prefix, OutputNetwork& out) {
    for (std::size_t i = 0; i < list.size(); ++i) put(list[i], prefix + std::to_string(i), out);
  }

  void put_weights(const LoomLayer& layer, const std::string& path, OutputNetwork& out) const {
    LoomWeights ready = ready_weights(layer);
    BlobRecord blob{.path = path,
                    .dtype = std::string(loom_dtype_name(ready.dtype)),
                    .scale = ready.scale,
                    .native = true};
    StoredBytes bytes = std::move(ready.native);
    const bool entity = kind_ == Kind::entity;
    // Readers of JSON checkpoints hold weights against their layer, those of .entity files do not.
    if (!entity) {
      with_tensor(path, [&] {
        check_weights(layer, {.dtype = ready.dtype, .native = true, .length = bytes.bytes.size()});
      });
    }
    if (!entity && scale_before_morph_ && !layer.weights->has_native())
      blob.scale = layer.weights->scale;
    // The original keeps this type's weights as they were before they were quantised.
    if (entity && layer.type == LoomLayerType::rms_norm && ready.dtype != LoomDType::float32) {
      blob.dtype = loom_dtype_name(LoomDType::float32);
      bytes = owned_bytes(master_bytes(layer, {}));
    }
    put_blob(std::move(blob), std::move(bytes), out);
  }

  void put_components(const LoomLayer& layer, const std::string& path, OutputNetwork& out) const {
    for (const LoomComponent& component : layer.components) {
      const std::string name = path + "." + component.suffix;
      if (kind_ == Kind::checkpoint) {
        throw UnsupportedError(ErrorCode::unsupported_feature,
                               "JSON checkpoints hold no parts of layers, only .entity files do",
                               {.tensor = printable(name), .value = printable(component.dtype)});
      }
      put_blob({.path = name,
                .dtype = component.dtype,
                .scale = component.scale,
                .native = component.native},
               component.bytes, out);
    }
  }

  Kind kind_;
  bool scale_before_morph_;
};

void put_transformer(OutputNetwork& output) {
  if (!output.network.transformer) return;
  LoomTransformer& transformer = *output.network.transformer;
  const auto put = [&](const char* name, StoredBytes& bytes, bool wanted) {
    if (wanted && !bytes.bytes.empty()) {
      put_blob({.path = std::string("transformer.") + name, .dtype = "float32"}, bytes, output);
    }
    bytes = {};
  };
  put("embeddings", transformer.embeddings, true);
  put("lm_head", transformer.lm_head, !transformer.lm_head_tied);
  put("final_norm", transformer.final_norm, transformer.has_final_norm);
}

}  // namespace

OutputNetwork checkpoint_output(const LoomNetwork& network, bool scale_before_morph) {
  return Outputs(Outputs::Kind::checkpoint, scale_before_morph).made(network);
}

OutputNetwork entity_output(const LoomNetwork& network) {
  OutputNetwork output = Outputs(Outputs::Kind::entity, false).made(network);
  put_transformer(output);
  return output;
}

}  // namespace thalia::formats::loom
