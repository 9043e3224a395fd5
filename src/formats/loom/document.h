// A file as it is: the description of its network, and which blobs it holds. Nothing is filled
// in, so that writing it again gives the same bytes. What the original makes of a file when it
// loads it is in load.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "thalia/formats/loom_network.h"

namespace thalia::formats::loom {

struct BlobRecord {
  std::string path;
  std::string dtype;  ///< as the file spells it
  float scale = 0;
  bool native = false;
  std::uint64_t offset = 0;  ///< from the beginning of the payload
  std::uint64_t length = 0;
};

/// What the bytes of a blob are, by its path.
enum class BlobKind {
  weights,  ///< native elements, or f32
  q4_0,
  bitnet,
};
BlobKind blob_kind(std::string_view path) noexcept;

struct Document {
  LoomNetwork network;               ///< layers in the order of the file, without weights
  std::vector<BlobRecord> blobs;     ///< in the order of the file, paths differ
  std::vector<std::string> unknown;  ///< keys that were passed over
};

/// Layers within layers: more are refused, because reading them is recursive.
inline constexpr unsigned kLoomNesting = 100;

/// Cells of the grid. @throws FormatError where an extent is negative, or their layers take more
/// memory than the limits allow.
std::uint64_t grid_cells(const LoomNetwork& network, const ReadLimits& limits,
                         std::uint64_t stored_bytes);
/// Where a layer of the list is in the grid of an already checked network.
/// @throws FormatError (out_of_bounds).
std::uint64_t grid_place(const LoomNetwork& network, const LoomLayer& layer);

/// A layer by the path of one of its blobs, in a network whose layers are those of the grid.
struct FoundLayer {
  const LoomLayer* layer = nullptr;  ///< nullptr: there is none
  std::uint64_t index = 0;           ///< of the layer of the grid that it is in
  std::string_view suffix{};         ///< what is after the layer's own path and its dot
};
FoundLayer find_layer(const LoomNetwork& network, std::string_view path) noexcept;
/// The same, to be changed.
inline LoomLayer* find_own_layer(LoomNetwork& network, std::string_view path) noexcept {
  return const_cast<LoomLayer*>(find_layer(network, path).layer);
}

/// The same of layers in any order that have their coordinates in a checked grid. Valid as long as
/// the list is not changed.
class ListedLayers {
 public:
  explicit ListedLayers(LoomNetwork& network);
  struct Found {
    LoomLayer* layer = nullptr;
    std::string_view suffix{};
  };
  Found find(std::string_view path) const noexcept;

 private:
  std::unordered_map<std::uint64_t, LoomLayer*> places_;
};

}  // namespace thalia::formats::loom
