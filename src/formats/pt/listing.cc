// Tensors share memory where one begins before another of its storage ends. They are sorted by
// where they begin, so that one pass finds the groups. Where shared memory is kept, a group of
// equal tensors that repeat no element is stored once; of any other the run of bytes from its first
// to its last is, and each is a view of that.
#include "formats/pt/listing.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "json/writer.h"

namespace thalia::formats::pt {
namespace {

// A start that whole elements of every dtype have.
constexpr std::uint64_t kWidest = 16;

constexpr std::uint64_t kIndexBound = std::uint64_t{1} << 32;

// A plain tensor whose memory others may share.
const TensorRecord* sharing(const Graph& graph, NodeId id) {
  const Node& node = graph.at(id);
  if (node.kind != NodeKind::tensor) return nullptr;
  const TensorRecord& tensor = graph.tensors[node.index];
  const bool plain = tensor.form == Form::strided && !tensor.conjugate && !tensor.negative &&
                     *tensor.shape.element_count() != 0;
  return plain ? &tensor : nullptr;
}

// Bytes of the storage that it lies in: at least one element.
Span span_of(const TensorRecord& tensor) {
  const std::uint64_t width = dtype_bits(tensor.dtype) / 8;
  const std::uint64_t reach =
      *reach_of(tensor.shape, std::span(tensor.stride).first(tensor.shape.rank()));
  return {.storage = tensor.storage,
          .begin = tensor.offset * width,
          .length = reach * width,
          .dtype = tensor.dtype};
}

bool same_geometry(const TensorRecord& a, const TensorRecord& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.offset == b.offset && a.stride == b.stride;
}

class Lister {
 public:
  Lister(const Graph& graph, const PtTree& tree, const ListingOptions& options,
         io::MemoryBudget& budget)
      : graph_(graph),
        tree_(tree),
        dequantize_(options.dequantize),
        shared_memory_(options.shared_memory),
        budget_(budget) {
    listing_.stored_of.resize(tree.occurrences.size());
    listing_.is_view.resize(tree.occurrences.size());
    group_of_.resize(tree.occurrences.size(), kAlone);
  }

  PtListing list();

 private:
  static constexpr std::size_t kAlone = SIZE_MAX;

  void find_groups();
  void add_group(std::vector<std::size_t> members);
  bool is_parameter_of_codes(std::size_t i) const;
  void store(std::size_t i);
  void store_span(const std::vector<std::size_t>& members);
  void store_apart();
  void store_shared();
  std::string node_text(std::size_t i) const;

  const Graph& graph_;
  const PtTree& tree_;
  const bool dequantize_;
  const bool shared_memory_;
  io::MemoryBudget& budget_;
  PtListing listing_;
  std::vector<std::vector<std::size_t>> groups_;  ///< occurrences that share memory
  std::vector<std::size_t> group_of_;
  std::map<std::pair<NodeKind, std::uint32_t>, std::size_t> known_;  ///< where each is stored
};

// By storages, then by where they begin: one that begins before the others end shares their memory.
void Lister::find_groups() {
  struct Member {
    Span span;
    std::size_t occurrence;
  };
  std::unordered_map<std::string_view, std::vector<Member>> of_storage;
  std::vector<std::string_view> keys;  // in the order of the file
  for (std::size_t i = 0; i < tree_.occurrences.size(); ++i) {
    const TensorRecord* const tensor = sharing(graph_, tree_.occurrences[i].node);
    if (tensor == nullptr) continue;
    const std::string_view key = graph_.storages[tensor->storage].key;
    std::vector<Member>& members = of_storage[key];
    if (members.empty()) keys.push_back(key);
    members.push_back({span_of(*tensor), i});
  }
  for (const std::string_view key : keys) {
    std::vector<Member>& members = of_storage[key];
    std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
      return std::pair(a.span.begin, a.span.length) < std::pair(b.span.begin, b.span.length);
    });
    std::vector<std::size_t> group;
    std::uint64_t reached = 0;
    for (const Member& member : members) {
      if (member.span.begin >= reached) add_group(std::exchange(group, {}));
      group.push_back(member.occurrence);
      reached = std::max(reached, member.span.begin + member.span.length);
    }
    add_group(std::move(group));
  }
}

void Lister::add_group(std::vector<std::size_t> members) {
  if (members.empty()) return;
  std::sort(members.begin(), members.end());
  for (const std::size_t i : members) group_of_[i] = groups_.size();
  groups_.push_back(std::move(members));
}

// The parameters of a quantized tensor are not stored if it is dequantized.
bool Lister::is_parameter_of_codes(std::size_t i) const {
  for (std::size_t back = 1; back <= 2 && back <= i; ++back) {
    const Node& node = graph_.at(tree_.occurrences[i - back].node);
    if (node.kind != NodeKind::tensor) continue;
    const TensorRecord& tensor = graph_.tensors[node.index];
    if (tensor.form == Form::quantized && tensor.quantizer.per_channel &&
        tree_.occurrences[i].place == tree_.occurrences[i - back].place)
      return true;
  }
  return false;
}

void Lister::store(std::size_t i) {
  const Occurrence& occurrence = tree_.occurrences[i];
  const Node& node = graph_.at(occurrence.node);
  const auto [found, fresh] = known_.try_emplace({node.kind, node.index}, listing_.stored.size());
  if (fresh || !shared_memory_) {
    found->second = listing_.stored.size();
    listing_.stored.push_back({.name = occurrence.name,
                               .node = occurrence.node,
                               .layout = layout_of(graph_, occurrence.node, dequantize_)});
    if (node.kind == NodeKind::tensor && !is_contiguous(graph_.tensors[node.index]) &&
        !is_sparse(listing_.stored.back().layout.encoding))
      ++listing_.strides_lost;
  }
  listing_.stored_of[i] = found->second;
}

void Lister::store_span(const std::vector<std::size_t>& members) {
  const Occurrence& first = tree_.occurrences[members.front()];
  std::uint64_t low = UINT64_MAX, high = 0;
  bool mixed = false;
  Span span = span_of(*sharing(graph_, first.node));
  for (const std::size_t i : members) {
    const Span part = span_of(*sharing(graph_, tree_.occurrences[i].node));
    low = std::min(low, part.begin);
    high = std::max(high, part.begin + part.length);
    mixed = mixed || part.dtype != span.dtype;
  }
  if (mixed) span.dtype = DType::u8;
  if (span.dtype == DType::u8) {
    const std::uint64_t bytes = graph_.storages[span.storage].bytes;
    low -= low % kWidest;
    high = std::min(high + (kWidest - high % kWidest) % kWidest, bytes);
  }
  span.begin = low;
  span.length = high - low;
  const std::uint64_t count = span.length / (dtype_bits(span.dtype) / 8);
  for (const std::size_t i : members) {
    listing_.stored_of[i] = listing_.stored.size();
    listing_.is_view[i] = true;
  }
  listing_.stored.push_back(
      {.name = first.name, .span = span, .layout = {.dtype = span.dtype, .shape = Shape({count})}});
}

std::string Lister::node_text(std::size_t i) const {
  const Occurrence& occurrence = tree_.occurrences[i];
  const Node& node = graph_.at(occurrence.node);
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  const std::string& name = listing_.stored[listing_.stored_of[i]].name;
  if (node.kind == NodeKind::array) {
    json.member(node.flag ? "scalar" : "array", name).end_object();
    return text;
  }
  json.member("tensor", name);
  const TensorRecord& tensor = graph_.tensors[node.index];
  if (node.flag) json.member("parameter", tensor.requires_grad);
  if (!node.flag && tensor.requires_grad) json.member("requires_grad", true);
  if (tensor.form == Form::sparse_coo && !tensor.coalesced) json.member("coalesced", false);
  if (listing_.is_view[i]) {
    const Span& span = *listing_.stored[listing_.stored_of[i]].span;
    const std::uint64_t width = dtype_bits(tensor.dtype) / 8;
    json.key("view").begin_object().member("dtype", torch_dtype_name(tensor.dtype));
    json.member("offset", tensor.offset - span.begin / width);
    json.key("shape").begin_array();
    for (const std::uint64_t extent : tensor.shape.extents()) json.value(extent);
    json.end_array().key("stride").begin_array();
    for (unsigned k = 0; k < tensor.shape.rank(); ++k) json.value(tensor.stride[k]);
    json.end_array().end_object();
  }
  if (tensor.form == Form::quantized && !dequantize_) {
    const TorchQuantizer& quantizer = tensor.quantizer;
    json.key("quantized").begin_object().member("dtype", quantum_name(tensor.quantum));
    if (quantizer.per_channel) {
      json.member("axis", quantizer.axis);
      json.key("scales").raw(node_text(i + 1)).key("zero_points").raw(node_text(i + 2));
    } else {
      json.key("scale").value(python_text(quantizer.scale));
      json.member("zero_point", quantizer.zero_point);
    }
    json.end_object();
  }
  json.end_object();
  return text;
}

void Lister::store_apart() {
  for (std::size_t i = 0; i < tree_.occurrences.size(); ++i)
    if (!dequantize_ || !is_parameter_of_codes(i)) store(i);
  for (const std::vector<std::size_t>& members : groups_) {
    if (members.size() == 1) continue;
    for (const std::size_t i : members) listing_.apart.push_back(tree_.occurrences[i].name);
  }
}

void Lister::store_shared() {
  std::vector<bool> done(groups_.size());
  for (std::size_t i = 0; i < tree_.occurrences.size(); ++i) {
    if (dequantize_ && is_parameter_of_codes(i)) continue;
    if (group_of_[i] == kAlone) {
      store(i);
      continue;
    }
    if (done[group_of_[i]]) continue;
    done[group_of_[i]] = true;
    const std::vector<std::size_t>& members = groups_[group_of_[i]];
    const TensorRecord& first = *sharing(graph_, tree_.occurrences[members.front()].node);
    const bool alike = std::all_of(members.begin(), members.end(), [&](std::size_t member) {
      return same_geometry(*sharing(graph_, tree_.occurrences[member].node), first);
    });
    // One that repeats elements, as expand() makes it, is stored as the few that there are.
    if (!alike || *first.shape.byte_length(first.dtype) > span_of(first).length) {
      store_span(members);
      continue;
    }
    store(i);
    for (const std::size_t member : members) listing_.stored_of[member] = listing_.stored_of[i];
  }
}

PtListing Lister::list() {
  find_groups();
  shared_memory_ ? store_shared() : store_apart();
  // A tensor's name is in the node of each that is it, or is a view of it.
  std::size_t written = 0, counted = 0;
  for (std::size_t i = 0; i < tree_.occurrences.size(); ++i) {
    if (is_parameter_of_codes(i)) continue;
    const std::size_t place = tree_.occurrences[i].place;
    listing_.tree.append(tree_.text, written, place - written).append(node_text(i));
    written = place;
    budget_.take("data.pkl", kTextCopies * (listing_.tree.size() - counted));
    counted = listing_.tree.size();
  }
  listing_.tree.append(tree_.text, written);
  return std::move(listing_);
}

}  // namespace

TensorLayout sparse_layout(const TensorRecord& tensor) {
  TensorLayout layout{.dtype = tensor.dtype, .shape = tensor.shape, .nnz = tensor.nnz};
  layout.encoding = tensor.form == Form::sparse_coo ? Encoding::coo : Encoding::csr;
  for (const std::uint64_t extent : tensor.shape.extents())
    layout.wide_indices = layout.wide_indices || extent >= kIndexBound;
  if (tensor.form == Form::sparse_csr)
    layout.wide_indices = layout.wide_indices || tensor.nnz >= kIndexBound;
  return layout;
}

TensorLayout layout_of(const Graph& graph, NodeId id, bool dequantize) {
  const Node& node = graph.at(id);
  if (node.kind == NodeKind::array) {
    const ArrayRecord& array = graph.arrays[node.index];
    return {.dtype = array.dtype, .shape = array.shape};
  }
  const TensorRecord& tensor = graph.tensors[node.index];
  if (tensor.form == Form::sparse_coo || tensor.form == Form::sparse_csr)
    return sparse_layout(tensor);
  TensorLayout layout{.dtype = tensor.dtype, .shape = tensor.shape};
  if (tensor.form == Form::quantized && dequantize) layout.dtype = DType::f32;
  return layout;
}

PtListing list_stored(const Graph& graph, const PtTree& tree, const ListingOptions& options,
                      io::MemoryBudget& budget) {
  return Lister(graph, tree, options, budget).list();
}

}  // namespace thalia::formats::pt
