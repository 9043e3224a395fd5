// A graph as a pickle of protocol 2, as torch.save writes it: the same opcodes in the same order,
// for objects whose equal texts are one object.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/pickle/value.h"

namespace thalia::formats::pt {

struct Pickled {
  std::string bytes;
  /// Storages of the graph in the order in which they got their keys: "0", "1", ….
  std::vector<std::uint32_t> storages;
};

/// @throws UnsupportedError for integers that torch.load does not read with weights_only.
Pickled write_pickle(const Graph& graph);

}  // namespace thalia::formats::pt
