// Architecture-only texts. What they leave out of convolutions is filled in here and nowhere else.
#include <utility>

#include "formats/loom/load.h"
#include "formats/loom/spec_reader.h"
#include "io/memory/allocation_limit.h"
#include "json/reader.h"
#include "thalia/error.h"
#include "thalia/formats/loom_network.h"

namespace thalia {
namespace formats::loom {
namespace {

void fill_extents(LoomLayer& layer) noexcept {
  const auto fill = [](std::int64_t& extent, std::int64_t height) {
    if (extent == 0) extent = height;
  };
  if (layer.type == LoomLayerType::cnn2 || layer.type == LoomLayerType::cnn3) {
    fill(layer.input_width, layer.input_height);
    fill(layer.output_width, layer.output_height);
  }
  if (layer.type == LoomLayerType::cnn3) {
    fill(layer.input_depth, layer.input_height);
    fill(layer.output_depth, layer.output_height);
  }
  for (LoomLayer& branch : layer.parallel_branches) fill_extents(branch);
  for (LoomLayer& inner : layer.sequential_layers) fill_extents(inner);
}

}  // namespace
}  // namespace formats::loom

LoomNetwork build_loom_network(std::string_view json, const ReadLimits& limits) {
  namespace loom = formats::loom;
  io::check_json_length("architecture", json.size(), limits, json.size());
  loom::SpecReader reader(loom::SpecKind::architecture, limits, json.size());
  LoomNetwork network;
  try {
    json::walk_object(json, limits.max_json_depth, [&](std::string_view key, json::Value& value) {
      reader.network_member(key, value, network);
    });
    for (LoomLayer& layer : network.layers) loom::fill_extents(layer);
    return loom::load_checkpoint(std::move(network), limits, json.size());
  } catch (Error& error) {
    error.add_section("architecture");
    throw;
  }
}

}  // namespace thalia
