// A graph as the tree that thalia_checkpoint keeps in a file's metadata (docs/use/python.md, "What
// a tree looks like"), and the names of the tensors in it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/pickle/value.h"
#include "io/memory/allocation_limit.h"
#include "thalia/options.h"

namespace thalia::formats::pt {

/// A tensor or an array where it is in the tree.
struct Occurrence {
  std::string name;  ///< keys and places on the way to it, with points between; no other's
  NodeId node = kNoNode;
  std::size_t place = 0;  ///< in PtTree::text, where its node belongs
};

struct PtTree {
  std::string text;  ///< JSON without the nodes of tensors and arrays
  std::vector<Occurrence> occurrences;
  /// The attributes of OrderedDicts, by the path of each: what torch calls _metadata, as a JSON
  /// node.
  std::vector<std::pair<std::string, std::string>> attributes;
  std::uint64_t attributes_lost = 0;  ///< dictionaries with others
  std::uint64_t layouts = 0;          ///< names of layouts, which become texts
  std::uint64_t bare_storages = 0;    ///< which become tensors
};

/// How often a text of the tree is in memory while a file is described.
inline constexpr std::uint64_t kTextCopies = 4;

/// Containers in each other, as thalia_checkpoint allows.
inline constexpr unsigned kDeepest = 80;

/// Adds to the graph the tensors that stand for bare storages. @throws FormatError;
/// UnsupportedError for values that no tree can hold.
PtTree make_tree(Graph& graph, const ReadLimits& limits, io::MemoryBudget& budget);
/// The same as a call of its own.
inline PtTree make_tree(Graph& graph, const ReadLimits& limits) {
  io::MemoryBudget budget(limits, graph.pickle_bytes);
  return make_tree(graph, limits, budget);
}

/// As Python's repr(): "0.1", "8.0", "nan", "-inf".
std::string python_text(double number);

}  // namespace thalia::formats::pt
