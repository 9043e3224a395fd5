// What a pickle of PyTorch holds: plain values, containers, and tensors that lie in storages. Nodes
// refer to each other by number, so a container may be in several places, and in itself.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "formats/pickle/symbols.h"
#include "thalia/types.h"

namespace thalia::formats::pt {

using NodeId = std::uint32_t;
inline constexpr NodeId kNoNode = UINT32_MAX;

enum class NodeKind : std::uint8_t {
  none,
  boolean,      ///< flag
  integer,      ///< integer
  big_integer,  ///< text: decimal digits, perhaps after a minus
  real,         ///< real
  complex,      ///< real, imaginary
  text,         ///< text, UTF-8
  bytes,        ///< text
  list,         ///< items
  tuple,
  set,
  frozenset,
  size,         ///< torch.Size: items are integers
  dict,         ///< items: key, value, key, value, …; flag: an OrderedDict; link: its attributes
  counter,      ///< a collections.Counter: items as those of a dict
  object,       ///< a module of a TorchScript program; link: the dict of its attributes
  dtype,        ///< text: "float32"
  device,       ///< text: "cuda:0"
  layout,       ///< text: "torch.sparse_coo"
  symbol,       ///< symbol: a function or class that was not called yet
  storage,      ///< index: into Graph::storages
  tensor,       ///< index: into Graph::tensors; flag: a Parameter
  array,        ///< index: into Graph::arrays; flag: a numpy scalar
  numpy_dtype,  ///< text: "f8"; flag: big-endian
};

struct Node {
  NodeKind kind = NodeKind::none;
  bool flag = false;
  NodeId link = kNoNode;
  std::uint32_t index = 0;
  Symbol symbol{};
  union {
    std::int64_t integer = 0;
    double real;
  };
  double imaginary = 0;
  std::string_view text{};
  std::vector<NodeId> items{};
};

/// What a persistent id names: bytes of the archive.
struct Storage {
  std::string_view key;  ///< the record's name below data/
  DType dtype = DType::u8;
  Quantum quantum = Quantum::none;
  bool untyped = false;
  std::uint64_t count = 0;  ///< elements of dtype
  std::uint64_t bytes = 0;
};

enum class Form : std::uint8_t { strided, quantized, sparse_coo, sparse_csr };

/// How the codes of a quantized tensor become numbers: scale × (code − zero point).
struct TorchQuantizer {
  bool per_channel = false;
  double scale = 1;
  std::int64_t zero_point = 0;
  NodeId scales = kNoNode, zero_points = kNoNode;  ///< tensors, one number a channel
  unsigned axis = 0;
};

/// A tensor as the pickle says it is. It lies in its storage: that was checked.
struct TensorRecord {
  Form form = Form::strided;
  DType dtype = DType::f32;
  Shape shape{};
  std::array<std::uint64_t, Shape::kMaxRank> stride{};  ///< in elements
  std::uint64_t offset = 0;                             ///< in elements
  std::uint32_t storage = 0;
  bool requires_grad = false;
  bool conjugate = false, negative = false;  ///< the elements are, of those that are stored
  Quantum quantum = Quantum::none;
  TorchQuantizer quantizer{};
  // For sparse tensors: the tensors that they are made of.
  NodeId indices = kNoNode;  ///< coo: [rank, nnz]; csr: of rows
  NodeId columns = kNoNode;
  NodeId values = kNoNode;
  bool coalesced = false;
  std::uint64_t nnz = 0;
};

/// A numpy array, whose bytes are in the pickle.
struct ArrayRecord {
  DType dtype = DType::f64;
  Shape shape{};
  bool big_endian = false;
  bool by_columns = false;  ///< the first index varies fastest
  std::string_view bytes{};
};

struct Graph {
  std::vector<Node> nodes{};
  std::vector<Storage> storages{};
  std::vector<TensorRecord> tensors{};
  std::vector<ArrayRecord> arrays{};
  std::deque<std::string> texts{};  ///< those that are not in the pickle as they are
  NodeId root = kNoNode;
  unsigned protocol = 0;
  std::uint64_t pickle_bytes = 0;
  std::uint64_t tensors_with_attributes = 0;  ///< whose attributes are not kept
  std::uint64_t plainer = 0;  ///< defaultdict, bytearray: which are dict and bytes here

  const Node& at(NodeId id) const noexcept { return nodes[id]; }
};

/// True where the elements of a strided tensor lie one after the other, row by row.
bool is_contiguous(const TensorRecord& tensor) noexcept;
/// Elements from the first to after the last one that the strides lead to; nullopt beyond 2^64.
std::optional<std::uint64_t> reach_of(const Shape& shape,
                                      std::span<const std::uint64_t> stride) noexcept;

}  // namespace thalia::formats::pt
