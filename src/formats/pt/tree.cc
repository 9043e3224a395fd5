// A small pickle can stand for a tree without an end, since its containers may be in several
// places. So visits, depth, names and the text are limited and counted while the tree is walked.
// Nodes go by their numbers: a bare storage adds a tensor to the graph on the way.
#include "formats/pt/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/source/base64.h"
#include "json/writer.h"
#include "thalia/state/value.h"

namespace thalia::formats::pt {
namespace {

// Beyond these, JSON's readers take numbers for others.
constexpr std::int64_t kExact = std::int64_t{1} << 53;
// A container may be in several places, and what holds it too: so few bytes stand for a tree
// without an end. A file whose containers repeat less than this is read.
constexpr std::uint64_t kVisits = 1 << 22;
constexpr std::uint64_t kVisitsOfEach = 16;
// About what a tensor's description takes in this file's reader, its name and the text aside.
constexpr std::uint64_t kOccurrenceBytes = 512;

class TreeWalk {
 public:
  TreeWalk(Graph& graph, const ReadLimits& limits, io::MemoryBudget& budget)
      : graph_(graph),
        limits_(limits),
        budget_(budget),
        json_(tree_.text),
        visits_left_(kVisits + kVisitsOfEach * graph.nodes.size()) {}

  PtTree walk() {
    node(graph_.root);
    return std::move(tree_);
  }

 private:
  void node(NodeId id);
  void key(NodeId id);
  bool leaf(const Node& value);
  void container(NodeId id);
  void members(NodeId id);
  void items(const char* kind, NodeId id);
  void step_into(std::string_view part, NodeId id);
  void occurrence(NodeId id);
  void attributes(NodeId id);
  bool is_plain(NodeId id, unsigned depth);
  std::string key_text(NodeId id);
  void named(const char* kind, std::string_view text) {
    json_.begin_object().member(kind, text).end_object();
  }
  std::string unique_name();
  void charge(std::uint64_t bytes) { budget_.take("data.pkl", bytes); }
  void count_text();
  [[noreturn]] void cannot(std::string_view what) const;

  Graph& graph_;
  const ReadLimits& limits_;
  io::MemoryBudget& budget_;
  std::size_t counted_ = 0;  ///< of the text
  PtTree tree_;
  JsonWriter json_;
  std::string path_;
  bool at_root_ = true;
  unsigned depth_ = 0;
  std::uint64_t visits_left_;
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, std::uint64_t> used_;  ///< the last number after each name
};

void TreeWalk::cannot(std::string_view what) const {
  throw UnsupportedError(ErrorCode::unsupported_feature, std::string(what),
                         {.section = "data.pkl", .field = at_root_ ? "" : printable(path_)});
}

void TreeWalk::node(NodeId id) {
  if (visits_left_ == 0) {
    throw FormatError(ErrorCode::limit_exceeded,
                      "containers contain each other so often that there is no end to them",
                      {.section = "data.pkl"});
  }
  --visits_left_;
  count_text();
  const Node& value = graph_.at(id);
  if (value.kind == NodeKind::tensor || value.kind == NodeKind::array ||
      value.kind == NodeKind::storage) {
    occurrence(id);
  } else if (!leaf(value)) {
    container(id);
  }
}

// A text or a key that is in the pickle once may be here any number of times.
void TreeWalk::count_text() {
  if (tree_.text.size() > limits_.max_json_bytes)
    fail_limit("data.pkl", "max_json_bytes", tree_.text.size(), limits_.max_json_bytes);
  charge(kTextCopies * (tree_.text.size() - counted_));
  counted_ = tree_.text.size();
}

bool TreeWalk::leaf(const Node& value) {
  const auto is = [&](NodeKind kind) { return value.kind == kind; };
  if (is(NodeKind::none)) {
    json_.null();
  } else if (is(NodeKind::boolean)) {
    json_.value(value.flag);
  } else if (is(NodeKind::text)) {
    json_.value(value.text);
  } else if (is(NodeKind::integer)) {
    if (value.integer > -kExact && value.integer < kExact) {
      json_.value(value.integer);
    } else {
      named("int", std::to_string(value.integer));
    }
  } else if (is(NodeKind::big_integer)) {
    named("int", value.text);
  } else if (is(NodeKind::real)) {
    if (std::isfinite(value.real)) {
      json_.raw(python_text(value.real));
    } else {
      named("float", python_text(value.real));
    }
  } else if (is(NodeKind::complex)) {
    json_.begin_object().key("complex").begin_array();
    json_.value(python_text(value.real)).value(python_text(value.imaginary));
    json_.end_array().end_object();
  } else if (is(NodeKind::bytes)) {
    named("bytes", to_base64(as_byte_span(value.text)));
  } else if (is(NodeKind::dtype) || is(NodeKind::device)) {
    named(is(NodeKind::dtype) ? "dtype" : "device", value.text);
  } else if (is(NodeKind::layout)) {
    ++tree_.layouts;
    json_.value(value.text);
  } else {
    return false;
  }
  return true;
}

void TreeWalk::container(NodeId id) {
  const auto is = [&](NodeKind kind) { return graph_.at(id).kind == kind; };
  if (is(NodeKind::symbol)) {
    cannot(fmt::format("the class or function '{}' as a value, which no file here holds",
                       printable(graph_.at(id).symbol.name)));
  }
  if (is(NodeKind::numpy_dtype)) cannot("a numpy dtype as a value, which no file here holds");
  if (depth_ == kDeepest)
    cannot(
        fmt::format("more than {} containers in each other, or one that holds itself", kDeepest));
  ++depth_;
  if (is(NodeKind::object)) {
    const NodeId state = graph_.at(id).link;
    if (state == kNoNode) {
      json_.begin_object().key("dict").begin_array().end_array().end_object();
    } else if (graph_.at(state).kind == NodeKind::dict) {
      members(state);
    } else {
      node(state);
    }
  } else if (is(NodeKind::dict) || is(NodeKind::counter)) {
    if (graph_.at(id).link != kNoNode) attributes(graph_.at(id).link);
    members(id);
  } else {
    items(is(NodeKind::list)    ? "list"
          : is(NodeKind::tuple) ? "tuple"
          : is(NodeKind::size)  ? "size"
          : is(NodeKind::set)   ? "set"
                                : "frozenset",
          id);
  }
  --depth_;
}

void TreeWalk::step_into(std::string_view part, NodeId id) {
  const std::size_t length = path_.size();
  const bool at_root = at_root_;
  if (!at_root_) path_ += '.';
  path_ += part;
  at_root_ = false;
  node(id);
  at_root_ = at_root;
  path_.resize(length);
}

// Indices in place of references: bare storages add to the graph on the way.
void TreeWalk::members(NodeId id) {
  const char* const plain = graph_.at(id).flag ? "ordered" : "dict";
  json_.begin_object()
      .key(graph_.at(id).kind == NodeKind::counter ? "counter" : plain)
      .begin_array();
  std::unordered_set<std::string> keys;
  for (std::size_t i = 0; i < graph_.at(id).items.size(); i += 2) {
    const NodeId key_id = graph_.at(id).items[i];
    json_.begin_array();
    key(key_id);
    const std::string part = key_text(key_id);
    // Python takes 1, 1.0 and True for the same key; other keys differ in kind or text.
    std::string same = part;
    if (const NodeKind kind = graph_.at(key_id).kind; kind == NodeKind::boolean) {
      same = graph_.at(key_id).flag ? "1" : "0";
    } else if (kind == NodeKind::real && same.ends_with(".0")) {
      same.resize(same.size() - 2);
    } else if (kind != NodeKind::integer && kind != NodeKind::real) {
      same += fmt::format("\x01{}", static_cast<int>(kind));
    }
    if (!keys.insert(std::move(same)).second) {
      throw FormatError(ErrorCode::inconsistent, "the key is there twice",
                        {.section = "data.pkl",
                         .field = at_root_ ? "" : printable(path_),
                         .value = printable(part)});
    }
    step_into(part, graph_.at(id).items[i + 1]);
    json_.end_array();
  }
  json_.end_array().end_object();
}

void TreeWalk::items(const char* kind, NodeId id) {
  json_.begin_object().key(kind).begin_array();
  for (std::size_t i = 0; i < graph_.at(id).items.size(); ++i)
    step_into(std::to_string(i), graph_.at(id).items[i]);
  json_.end_array().end_object();
}

// Only what Python can hash, and what holds no tensors.
void TreeWalk::key(NodeId id) {
  const NodeKind kind = graph_.at(id).kind;
  const bool mutates = kind == NodeKind::list || kind == NodeKind::dict ||
                       kind == NodeKind::counter || kind == NodeKind::set ||
                       kind == NodeKind::object;
  if (mutates || !is_plain(id, 0))
    cannot("a key that is neither a number, a text nor a tuple of these");
  node(id);
}

// As Python's str() if that is short.
std::string TreeWalk::key_text(NodeId id) {
  const Node& value = graph_.at(id);
  const auto is = [&](NodeKind kind) { return value.kind == kind; };
  if (is(NodeKind::none)) return "None";
  if (is(NodeKind::boolean)) return value.flag ? "True" : "False";
  if (is(NodeKind::integer)) return std::to_string(value.integer);
  if (is(NodeKind::real)) return python_text(value.real);
  if (is(NodeKind::bytes)) return to_base64(as_byte_span(value.text));
  if (is(NodeKind::complex))
    return fmt::format("({}, {})", python_text(value.real), python_text(value.imaginary));
  if (value.items.empty()) return std::string(value.text);
  std::string text = "(";
  for (const NodeId item : value.items) {
    if (text.size() > 1) text += ", ";
    const bool quoted = graph_.at(item).kind == NodeKind::text;
    text += quoted ? '\'' + key_text(item) + '\'' : key_text(item);
  }
  return text + ')';
}

bool TreeWalk::is_plain(NodeId id, unsigned depth) {
  const Node& value = graph_.at(id);
  if (visits_left_ == 0 || depth > kDeepest) return false;
  --visits_left_;
  const auto is = [&](NodeKind kind) { return value.kind == kind; };
  if (is(NodeKind::tensor) || is(NodeKind::array) || is(NodeKind::storage) ||
      is(NodeKind::symbol) || is(NodeKind::numpy_dtype) || is(NodeKind::object) ||
      is(NodeKind::layout) || value.link != kNoNode)
    return false;
  return std::all_of(value.items.begin(), value.items.end(),
                     [&](NodeId item) { return is_plain(item, depth + 1); });
}

std::string TreeWalk::unique_name() {
  const std::string name = path_.empty() ? "tensor" : path_;
  charge(kOccurrenceBytes + kTextCopies * name.size());
  count_text();
  std::string unique = name;
  // From where the last one of that name ended: many paths may give the same.
  std::uint64_t& n = used_[name];
  while (!names_.insert(unique).second) {
    n = n == 0 ? 2 : n + 1;
    unique = fmt::format("{}#{}", name, n);
  }
  return unique;
}

void TreeWalk::occurrence(NodeId id) {
  if (tree_.occurrences.size() == limits_.max_tensors)
    fail_limit("data.pkl", "max_tensors", tree_.occurrences.size() + 1, limits_.max_tensors);
  if (graph_.at(id).kind == NodeKind::storage) {
    // As a tensor of all of it. The node is changed, so that it becomes one tensor wherever it is.
    ++tree_.bare_storages;
    const std::uint32_t place = graph_.at(id).index;
    const Storage& storage = graph_.storages[place];
    TensorRecord tensor{.dtype = storage.dtype, .shape = Shape({storage.count})};
    tensor.stride[0] = 1;
    tensor.storage = place;
    graph_.tensors.push_back(tensor);
    graph_.nodes[id].kind = NodeKind::tensor;
    graph_.nodes[id].index = static_cast<std::uint32_t>(graph_.tensors.size() - 1);
  }
  json_.raw("");
  tree_.occurrences.push_back({.name = unique_name(), .node = id, .place = tree_.text.size()});
  const Node& value = graph_.at(id);
  if (value.kind != NodeKind::tensor) return;
  const TensorRecord& tensor = graph_.tensors[value.index];
  if (tensor.form != Form::quantized || !tensor.quantizer.per_channel) return;
  // After it, and their nodes go into its own.
  const std::size_t length = path_.size();
  for (const auto& [part, parameter] : {std::pair(".scales", tensor.quantizer.scales),
                                        std::pair(".zero_points", tensor.quantizer.zero_points)}) {
    path_ += part;
    tree_.occurrences.push_back(
        {.name = unique_name(), .node = parameter, .place = tree_.text.size()});
    path_.resize(length);
  }
}

void TreeWalk::attributes(NodeId state) {
  const std::vector<NodeId>& items = graph_.at(state).items;
  if (items.empty()) return;
  const Node& name = graph_.at(items[0]);
  const bool known = items.size() == 2 && name.kind == NodeKind::text && name.text == "_metadata";
  if (!known || !is_plain(items[1], depth_)) {
    ++tree_.attributes_lost;
    return;
  }
  // A text of its own, by the same rules.
  TreeWalk inner(graph_, limits_, budget_);
  inner.visits_left_ = visits_left_;
  inner.depth_ = depth_;
  charge(kTextCopies * path_.size());
  inner.node(items[1]);
  visits_left_ = inner.visits_left_;
  inner.count_text();
  tree_.attributes.emplace_back(path_, std::move(inner.tree_.text));
}

}  // namespace

std::string python_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  return Value(number).number_text();
}

PtTree make_tree(Graph& graph, const ReadLimits& limits, io::MemoryBudget& budget) {
  return TreeWalk(graph, limits, budget).walk();
}

}  // namespace thalia::formats::pt
