// JSON checkpoints: the whole file is one text, with weights in Base64.
#include "formats/loom/checkpoint.h"

#include <fmt/format.h>

#include "base/fail.h"
#include "formats/loom/load.h"
#include "formats/loom/spec_reader.h"
#include "io/file/file_bytes.h"
#include "io/memory/allocation_limit.h"
#include "thalia/formats/loom.h"

namespace thalia {
namespace formats::loom {
namespace {

LoomNetwork loaded_text(std::string_view json, const ReadLimits& limits) {
  std::vector<std::string> unknown;
  return load_checkpoint(parse_checkpoint(json, limits, unknown), limits, json.size());
}

void take_from(LoomLayer& layer, const std::string& path, std::vector<BlobRecord>& blobs,
               std::vector<StoredBytes>& bytes) {
  if (layer.weights) {
    with_tensor(path, [&] { check_weights(layer); });
    LoomWeights& weights = *layer.weights;
    const bool is_master = !weights.master.bytes.empty() || weights.master.owner != nullptr;
    StoredBytes& stored = is_master ? weights.master : weights.native;
    blobs.push_back({.path = path,
                     .dtype = std::string(loom_dtype_name(weights.dtype)),
                     .scale = weights.scale,
                     .native = !is_master,
                     .length = stored.bytes.size()});
    bytes.push_back(std::move(stored));
    layer.weights.reset();
  }
  const auto inner = [&](std::vector<LoomLayer>& list, std::string_view name) {
    for (std::size_t i = 0; i < list.size(); ++i)
      take_from(list[i], fmt::format("{}.{}.{}", path, name, i), blobs, bytes);
  };
  inner(layer.parallel_branches, "parallel_branches");
  inner(layer.sequential_layers, "sequential_layers");
  for (LoomLayer& observed : layer.meta_observed_layer)
    take_from(observed, path + ".meta_observed_layer", blobs, bytes);
}

}  // namespace

LoomNetwork parse_checkpoint(std::string_view json, const ReadLimits& limits,
                             std::vector<std::string>& unknown) {
  io::check_json_length("checkpoint", json.size(), limits, json.size());
  SpecReader reader(SpecKind::checkpoint, limits, json.size());
  LoomNetwork network;
  try {
    json::walk_object(json, limits.max_json_depth, [&](std::string_view key, json::Value& value) {
      reader.network_member(key, value, network);
    });
    static_cast<void>(grid_cells(network, limits, json.size()));
    for (const LoomLayer& layer : network.layers) static_cast<void>(grid_place(network, layer));
  } catch (Error& error) {
    error.add_section("checkpoint");
    throw;
  }
  unknown = reader.unknown();
  return network;
}

void take_weights(LoomNetwork& network, std::vector<BlobRecord>& blobs,
                  std::vector<StoredBytes>& bytes) {
  for (LoomLayer& layer : network.layers)
    take_from(layer, fmt::format("layers.{}", grid_place(network, layer)), blobs, bytes);
}

}  // namespace formats::loom

LoomNetwork parse_loom_json(std::string_view json, const ReadLimits& limits) {
  return formats::loom::loaded_text(json, limits);
}

LoomNetwork load_loom_json(const std::filesystem::path& path, const ReadOptions& options) {
  const auto file = io::FileBytes::open_whole(path, options.input.access, options.work.cancel);
  const ByteSpan bytes = file->bytes();
  return with_path(path.native(), [&] {
    io::check_file_bytes("checkpoint", bytes.size(), options.input.limits);
    return formats::loom::loaded_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                      options.input.limits);
  });
}

}  // namespace thalia
