// What of a graph's tensors is stored where: each by itself, or those that lie in each other's
// memory once. As thalia_checkpoint saves them (python/thalia_checkpoint/torch/_tree.py).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/pt/tree.h"
#include "formats/source/list_names.h"
#include "thalia/types.h"

namespace thalia::formats::pt {

/// A run of bytes of a storage.
struct Span {
  std::uint32_t storage = 0;
  std::uint64_t begin = 0, length = 0;
  DType dtype = DType::u8;
};

/// What a converted file has one tensor of.
struct Stored {
  std::string name;
  NodeId node = kNoNode;  ///< the tensor or array; kNoNode: the span
  std::optional<Span> span{};
  TensorLayout layout{};
};

struct PtListing {
  std::vector<Stored> stored;
  std::vector<std::size_t> stored_of;  ///< for each occurrence
  std::vector<bool> is_view;           ///< for each occurrence: of a span
  std::string tree;                    ///< the whole JSON text
  std::uint64_t strides_lost = 0;      ///< of tensors that are stored row by row and did not lie so
  std::vector<std::string> apart;      ///< names of those that shared memory and do not here
};

/// What conversions say of `apart`.
inline std::string shared_memory_loss(const PtListing& listing) {
  return "the memory that tensors share: " + list_names(listing.apart);
}

struct ListingOptions {
  bool dequantize = false;     ///< codes become numbers, and their parameters are gone
  bool shared_memory = false;  ///< tensors that lie in each other's memory are stored once
};

/// Layout of one tensor or array, row by row. `dequantize`: of codes, that of their numbers.
TensorLayout layout_of(const Graph& graph, NodeId node, bool dequantize);

/// The layout of a sparse tensor. Indices are u32 where they may be.
TensorLayout sparse_layout(const TensorRecord& tensor);

/// @param tree of the graph. @throws FormatError (limit_exceeded).
PtListing list_stored(const Graph& graph, const PtTree& tree, const ListingOptions& options,
                      io::MemoryBudget& budget);
/// The same as a call of its own.
inline PtListing list_stored(const Graph& graph, const PtTree& tree, const ListingOptions& options,
                             const ReadLimits& limits) {
  io::MemoryBudget budget(limits, graph.pickle_bytes);
  return list_stored(graph, tree, options, budget);
}

}  // namespace thalia::formats::pt
