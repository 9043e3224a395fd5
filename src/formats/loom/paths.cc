// Places of layers: in the grid, and by path.
#include <fmt/format.h>

#include <charconv>

#include "base/fail.h"
#include "formats/loom/document.h"
#include "io/memory/allocation_limit.h"

namespace thalia {
namespace formats::loom {
namespace {

// What a path has after its layer.
bool is_component(std::string_view suffix) noexcept {
  if (suffix.empty() || suffix == "biases" || suffix == "inner_norm" || suffix == "q_norm" ||
      suffix == "k_norm")
    return true;
  return suffix.starts_with("q4_0.") || suffix.starts_with("bitnet_ternary.");
}

// A number without a sign or leading zeros, taken off the front.
std::optional<std::uint64_t> take_index(std::string_view& path) noexcept {
  std::uint64_t index = 0;
  const auto [end, error] = std::from_chars(path.data(), path.data() + path.size(), index);
  const auto digits = static_cast<std::size_t>(end - path.data());
  if (error != std::errc{} || (digits > 1 && path.front() == '0')) return std::nullopt;
  path.remove_prefix(digits);
  if (path.empty()) return index;
  if (path.front() != '.') return std::nullopt;
  path.remove_prefix(1);
  return index;
}

bool take_word(std::string_view& path, std::string_view word) noexcept {
  if (!path.starts_with(word)) return false;
  if (path.size() == word.size()) {
    path = {};
    return true;
  }
  if (path[word.size()] != '.') return false;
  path.remove_prefix(word.size() + 1);
  return true;
}

// One step down; nullptr where the path leads nowhere, and the layer itself where it ends.
const LoomLayer* step_down(const LoomLayer* layer, std::string_view& path, bool& moved) noexcept {
  moved = true;
  const std::vector<LoomLayer>* list = nullptr;
  if (take_word(path, "meta_observed_layer")) {
    return layer->meta_observed_layer.empty() ? nullptr : &layer->meta_observed_layer.front();
  }
  if (take_word(path, "parallel_branches"))
    list = &layer->parallel_branches;
  else if (take_word(path, "sequential_layers"))
    list = &layer->sequential_layers;
  if (list == nullptr) {
    moved = false;
    return layer;
  }
  const auto index = take_index(path);
  return index && *index < list->size() ? &(*list)[*index] : nullptr;
}

// The index of the layer that a path begins with.
std::optional<std::uint64_t> take_top(std::string_view& path) noexcept {
  return take_word(path, "layers") ? take_index(path) : std::nullopt;
}

// As far down as the path leads; what is left of it is a component, or nothing.
const LoomLayer* descend(const LoomLayer* layer, std::string_view& path) noexcept {
  for (bool moved = true; moved && layer != nullptr && !path.empty();)
    layer = step_down(layer, path, moved);
  return layer != nullptr && is_component(path) ? layer : nullptr;
}

}  // namespace

std::uint64_t grid_cells(const LoomNetwork& network, const ReadLimits& limits,
                         std::uint64_t stored_bytes) {
  std::uint64_t cells = 1;
  bool passed = false;
  const std::pair<std::string_view, std::int64_t> extents[] = {
      {"depth", network.depth},
      {"rows", network.rows},
      {"cols", network.cols},
      {"layers_per_cell", network.layers_per_cell}};
  for (const auto& [field, extent] : extents) {
    if (extent < 0) {
      throw FormatError(
          ErrorCode::bad_value, {},
          {.field = std::string(field), .value = std::to_string(extent), .bound = "at least 0"});
    }
    passed |= __builtin_mul_overflow(cells, static_cast<std::uint64_t>(extent), &cells);
    // Zero, whatever the others are.
    if (extent == 0) return 0;
  }
  std::uint64_t bytes = 0;
  passed |= __builtin_mul_overflow(cells, sizeof(LoomLayer), &bytes);
  io::MemoryBudget(limits, stored_bytes).take("layers", passed ? UINT64_MAX : bytes);
  return cells;
}

std::uint64_t grid_place(const LoomNetwork& network, const LoomLayer& layer) {
  const struct {
    std::string_view field;
    std::int64_t place, extent;
  } places[] = {{"z", layer.z, network.depth},
                {"y", layer.y, network.rows},
                {"x", layer.x, network.cols},
                {"l", layer.l, network.layers_per_cell}};
  std::uint64_t index = 0;
  for (const auto& [field, place, extent] : places) {
    if (place < 0 || place >= extent) {
      throw FormatError(ErrorCode::out_of_bounds, "a layer outside of the grid",
                        {.field = std::string(field),
                         .value = std::to_string(place),
                         .bound = fmt::format("0 to {}", extent - 1)});
    }
    index = index * static_cast<std::uint64_t>(extent) + static_cast<std::uint64_t>(place);
  }
  return index;
}

FoundLayer find_layer(const LoomNetwork& network, std::string_view path) noexcept {
  const auto index = take_top(path);
  if (!index || *index >= network.layers.size()) return {};
  const LoomLayer* const layer = descend(&network.layers[*index], path);
  if (layer == nullptr) return {};
  return {.layer = layer, .index = *index, .suffix = path};
}

ListedLayers::ListedLayers(LoomNetwork& network) {
  for (LoomLayer& layer : network.layers) places_.emplace(grid_place(network, layer), &layer);
}

ListedLayers::Found ListedLayers::find(std::string_view path) const noexcept {
  const auto index = take_top(path);
  if (!index) return {};
  const auto place = places_.find(*index);
  if (place == places_.end()) return {};
  const LoomLayer* const layer = descend(place->second, path);
  if (layer == nullptr) return {};
  return {.layer = const_cast<LoomLayer*>(layer), .suffix = path};
}

BlobKind blob_kind(std::string_view path) noexcept {
  // After the layer's own path, which has no such words.
  if (path.find(".q4_0.") != std::string_view::npos) return BlobKind::q4_0;
  if (path.find(".bitnet_ternary.") != std::string_view::npos) return BlobKind::bitnet;
  return BlobKind::weights;
}

}  // namespace formats::loom

const LoomLayer* find_loom_layer(const LoomNetwork& network, std::string_view path) noexcept {
  const auto found = formats::loom::find_layer(network, path);
  return found.suffix.empty() ? found.layer : nullptr;
}

}  // namespace thalia
