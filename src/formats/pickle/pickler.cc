// Opcodes come in the order in which Python's pickler walks the objects: function, arguments, call,
// state. What is one object in torch (a parameter over a whole storage, a storage's key) is written
// once and fetched afterwards, so that it is one object again. Recursion is as deep as the graph,
// whose makers limit that.
#include "formats/pickle/pickler.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "formats/pickle/pickle_text.h"

namespace thalia::formats::pt {
namespace {

// Python's pickler adds so many items at once.
constexpr std::size_t kBatch = 1000;

class Pickler : private PickleText {
 public:
  explicit Pickler(const Graph& graph) : graph_(graph) {}

  Pickled write() {
    value(graph_.root);
    return {.bytes = finish(), .storages = std::move(order_)};
  }

 private:
  void value(NodeId id);
  void tuple(const std::vector<NodeId>& items);
  void list(const std::vector<NodeId>& items);
  void members(const Node& dict);
  void counter(const Node& node);
  void add_batches(const std::vector<NodeId>& items, std::size_t width, char one, char many);
  void hashable_set(const Node& node);

  void tensor(NodeId id);
  void strided(const TensorRecord& record);
  void quantized(const TensorRecord& record);
  void sparse(const TensorRecord& record);
  void geometry(const TensorRecord& record);
  void counts(std::span<const std::uint64_t> numbers);
  void storage(std::uint32_t place);
  void no_hooks();

  const Graph& graph_;
  std::vector<std::uint32_t> order_;  ///< of storages, by their keys
  unsigned hashed_ = 0;               ///< in keys and members of sets
  Texts keys_;  ///< of storages: objects of their own, whatever texts there are
  std::map<std::pair<std::uint32_t, bool>, std::uint32_t> parameters_;
  std::unordered_map<std::uint32_t, std::size_t> storages_;
};

void Pickler::tuple(const std::vector<NodeId>& items) {
  if (items.size() > 3) put('(');
  for (const NodeId item : items) value(item);
  close_tuple(items.size());
}

void Pickler::add_batches(const std::vector<NodeId>& items, std::size_t width, char one,
                          char many) {
  const auto item = [&](std::size_t i) {
    const bool key = width == 2 && i % 2 == 0;
    hashed_ += key ? 1 : 0;
    value(items[i]);
    hashed_ -= key ? 1 : 0;
  };
  if (items.size() == width) {
    for (std::size_t i = 0; i < width; ++i) item(i);
    return put(one);
  }
  for (std::size_t at = 0; at < items.size();) {
    put('(');
    for (const std::size_t end = std::min(items.size(), at + kBatch * width); at < end; ++at)
      item(at);
    put(many);
  }
}

void Pickler::list(const std::vector<NodeId>& items) {
  put(']');
  memoize();
  add_batches(items, 1, 'a', 'e');
}

void Pickler::members(const Node& dict) {
  if (dict.flag) {
    no_hooks();  // an empty OrderedDict
  } else {
    put('}');
    memoize();
  }
  add_batches(dict.items, 2, 's', 'u');
  if (dict.link == kNoNode) return;
  value(dict.link);
  put('b');
}

void Pickler::counter(const Node& node) {
  global("collections Counter");
  put('}');
  memoize();
  add_batches(node.items, 2, 's', 'u');
  close_tuple(1);
  call();
}

// torch.load knows no frozenset: a set, or if that cannot be hashed a tuple.
void Pickler::hashable_set(const Node& node) {
  if (hashed_ > 0) return tuple(node.items);
  global("__builtin__ set");
  ++hashed_;
  list(node.items);
  --hashed_;
  close_tuple(1);
  call();
}

void Pickler::value(NodeId id) {
  const Node& node = graph_.at(id);
  const auto is = [&](NodeKind kind) { return node.kind == kind; };
  if (is(NodeKind::none)) return put('N');
  if (is(NodeKind::boolean)) return flag(node.flag);
  if (is(NodeKind::integer)) return integer(node.integer);
  if (is(NodeKind::big_integer)) return long_integer(node.text);
  if (is(NodeKind::real)) return real(node.real);
  if (is(NodeKind::text)) return text(node.text);
  if (is(NodeKind::bytes)) return bytes(node.text);
  if (is(NodeKind::dtype)) return global("torch " + std::string(node.text));
  if (is(NodeKind::device)) return device(node.text);
  if (is(NodeKind::tensor)) return tensor(id);
  if (is(NodeKind::list)) return list(node.items);
  if (is(NodeKind::tuple)) return tuple(node.items);
  if (is(NodeKind::dict)) return members(node);
  if (is(NodeKind::counter)) return counter(node);
  if (is(NodeKind::set) || is(NodeKind::frozenset)) return hashable_set(node);
  if (is(NodeKind::size)) {
    global("torch Size");
    tuple(node.items);
    close_tuple(1);
  } else {
    global("__builtin__ complex");
    real(node.real);
    real(node.imaginary);
    close_tuple(2);
  }
  call();
}

void Pickler::tensor(NodeId id) {
  const Node& node = graph_.at(id);
  const TensorRecord& record = graph_.tensors[node.index];
  if (record.form == Form::quantized) return quantized(record);
  if (record.form != Form::strided) return sparse(record);
  if (!node.flag) return strided(record);
  // The same parameter wherever it is; of parts of one each is its own.
  const Storage& whole = graph_.storages[record.storage];
  const bool all = is_contiguous(record) && record.offset == 0 && record.dtype == whole.dtype &&
                   *record.shape.element_count() == whole.count && whole.count != 0;
  const std::pair key(record.storage, record.requires_grad);
  if (const auto found = parameters_.find(key); all && found != parameters_.end())
    return get(found->second);
  global("torch._utils _rebuild_parameter");
  TensorRecord data = record;
  data.requires_grad = false;
  strided(data);
  flag(record.requires_grad);
  no_hooks();
  close_tuple(3);
  const std::uint32_t place = call();
  if (all) parameters_.emplace(key, place);
}

void Pickler::no_hooks() {
  global("collections OrderedDict");
  close_tuple(0);
  call();
}

void Pickler::counts(std::span<const std::uint64_t> numbers) {
  if (numbers.size() > 3) put('(');
  for (const std::uint64_t number : numbers) integer(static_cast<std::int64_t>(number));
  close_tuple(numbers.size());
}

void Pickler::storage(std::uint32_t place) {
  const auto [found, fresh] = storages_.try_emplace(place, order_.size());
  if (fresh) order_.push_back(place);
  const Storage& storage = graph_.storages[place];
  std::string_view type = torch_storage_name(storage.dtype);
  if (storage.quantum != Quantum::none) type = quantum_storage_name(storage.quantum);
  const bool typed = !storage.untyped && !type.empty();
  put('(');
  text("storage");
  global(typed ? "torch " + std::string(type) : "torch.storage UntypedStorage");
  memo_text(keys_, std::to_string(found->second));
  text("cpu");
  integer(static_cast<std::int64_t>(typed ? storage.count : storage.bytes));
  close_tuple(4);
  put('Q');
}

void Pickler::geometry(const TensorRecord& record) {
  storage(record.storage);
  integer(static_cast<std::int64_t>(record.offset));
  counts(record.shape.extents());
  counts(std::span(record.stride).first(record.shape.rank()));
}

void Pickler::strided(const TensorRecord& record) {
  const Storage& whole = graph_.storages[record.storage];
  const bool typed = !whole.untyped && !torch_storage_name(whole.dtype).empty();
  global(typed ? "torch._utils _rebuild_tensor_v2" : "torch._utils _rebuild_tensor_v3");
  put('(');
  geometry(record);
  flag(record.requires_grad);
  no_hooks();
  if (!typed) global("torch " + std::string(torch_dtype_name(record.dtype)));
  close_tuple(4);
  call();
}

void Pickler::quantized(const TensorRecord& record) {
  const TorchQuantizer& quantizer = record.quantizer;
  global("torch._utils _rebuild_qtensor");
  put('(');
  geometry(record);
  if (quantizer.per_channel) {
    put('(');
    global("torch per_channel_affine");
    value(quantizer.scales);
    value(quantizer.zero_points);
    integer(quantizer.axis);
    close_tuple(4);
  } else {
    global("torch per_tensor_affine");
    real(quantizer.scale);
    integer(quantizer.zero_point);
    close_tuple(3);
  }
  flag(record.requires_grad);
  no_hooks();
  close_tuple(4);
  call();
}

void Pickler::sparse(const TensorRecord& record) {
  const bool coo = record.form == Form::sparse_coo;
  global("torch._utils _rebuild_sparse_tensor");
  global("torch.serialization _get_layout");
  text(coo ? "torch.sparse_coo" : "torch.sparse_csr");
  close_tuple(1);
  call();
  put('(');
  value(record.indices);
  if (!coo) value(record.columns);
  value(record.values);
  global("torch Size");
  counts(record.shape.extents());
  close_tuple(1);
  call();
  if (coo) flag(record.coalesced);
  close_tuple(4);
  close_tuple(2);
  call();
}

}  // namespace

Pickled write_pickle(const Graph& graph) {
  return Pickler(graph).write();
}

}  // namespace thalia::formats::pt
