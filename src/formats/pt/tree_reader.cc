// Nothing of the tree is trusted: each node is checked for what its kind holds, and depth before it
// is gone into. Faults are TreeFaults, which say what is wrong: to the caller a tree that does not
// fit is a loss and no error.
#include "formats/pt/tree_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "formats/pt/tree.h"
#include "formats/source/base64.h"

namespace thalia::formats::pt {
namespace {

// Python reads no longer integers out of a text.
constexpr std::size_t kMostDigits = 4300;

[[noreturn]] void fail_tree(std::string what) {
  throw TreeFault{std::move(what)};
}

const std::string& text_of(const Value& value) {
  if (value.kind() != Value::Kind::string) fail_tree("a text is expected");
  return value.as_string();
}

const std::vector<Value>& elements_of(const Value& value) {
  if (!value.is_array()) fail_tree("a list is expected");
  return value.elements();
}

// The one member that says what it is. Next to it may be the class that the value had, the name of
// a member of an enumeration, and the dtype of texts or times that are stored as numbers.
const Value::Member& kind_of(const Value& node) {
  const Value::Member* found = nullptr;
  for (const Value::Member& member : node.members()) {
    if (member.name == "class" || member.name == "name") continue;
    if (member.name == "dtype" && (node.find("array") || node.find("scalar"))) continue;
    if (found != nullptr) fail_tree("an object of several members");
    found = &member;
  }
  if (found == nullptr) fail_tree("an object that says nothing of its kind");
  return *found;
}

// What torch.device takes; its index has 8 bits.
bool is_device(std::string_view text) {
  static constexpr std::array<std::string_view, 14> kTypes{
      "cpu", "cuda", "mps",    "xpu",  "hpu",    "xla",  "meta",
      "hip", "mtia", "vulkan", "maia", "mkldnn", "lazy", "privateuseone"};
  const std::size_t colon = text.find(':');
  if (std::find(kTypes.begin(), kTypes.end(), text.substr(0, colon)) == kTypes.end()) return false;
  if (colon == std::string_view::npos) return true;
  const std::string_view digits = text.substr(colon + 1);
  unsigned index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  return error == std::errc() && end == digits.data() + digits.size() && index < 128;
}

}  // namespace

void set_row_strides(TensorRecord& tensor) noexcept {
  std::uint64_t step = 1;
  for (unsigned i = tensor.shape.rank(); i-- > 0;) {
    tensor.stride[i] = step;
    // As torch counts past dimensions without elements.
    step *= std::max<std::uint64_t>(tensor.shape[i], 1);
  }
}

TreeReader::TreeReader(PtPlan& plan, const SinkInput& input) : plan_(plan), input_(input) {
  storages_.assign(input.tensors.size(), kUnused);
  for (std::size_t i = 0; i < input.tensors.size(); ++i) places_.emplace(input.tensors[i].name, i);
}

NodeId TreeReader::read(const Value& value) {
  return node(value, 0);
}

void TreeReader::set_attributes(const Value& attributes) {
  if (!attributes.is_array()) return;
  for (const Value& pair : attributes.elements()) {
    if (pair.is_array() && pair.size() == 2 && pair.elements()[0].kind() == Value::Kind::string)
      attributes_.emplace(pair.elements()[0].as_string(), &pair.elements()[1]);
  }
}

NodeId TreeReader::add(Node added) {
  plan_.graph.nodes.push_back(std::move(added));
  return static_cast<NodeId>(plan_.graph.nodes.size() - 1);
}

NodeId TreeReader::add_text(std::string text) {
  return add({.kind = NodeKind::text, .text = plan_.graph.texts.emplace_back(std::move(text))});
}

NodeId TreeReader::node(const Value& value, unsigned depth) {
  if (depth > kDeepest) fail_tree(fmt::format("more than {} containers in each other", kDeepest));
  if (value.is_null()) return add({.kind = NodeKind::none});
  if (value.kind() == Value::Kind::boolean)
    return add({.kind = NodeKind::boolean, .flag = value.as_bool()});
  if (value.kind() == Value::Kind::string) return add_text(value.as_string());
  if (value.kind() == Value::Kind::number) return number(value.number_text());
  if (!value.is_object()) fail_tree("there is a list where a value is expected");
  if (value.find("tensor") != nullptr) return tensor(value);
  if (const Value* const members = value.find("deque")) {
    ++plainer_;
    return container("list", *members, depth);
  }
  const Value::Member& kind = kind_of(value);
  // What a class of Python's makes of it is no object that torch.load takes.
  if (value.size() != 1) ++plainer_;
  return special(kind.name, kind.value, depth);
}

NodeId TreeReader::number(const std::string& text) {
  return text.find_first_of(".eE") == std::string::npos ? integer(text) : real(text);
}

NodeId TreeReader::integer(const std::string& text) {
  const std::string_view digits = std::string_view(text).substr(text.starts_with('-') ? 1 : 0);
  const bool sound = !digits.empty() && digits.size() <= kMostDigits &&
                     std::all_of(digits.begin(), digits.end(),
                                 [](char digit) { return digit >= '0' && digit <= '9'; });
  if (!sound) fail_tree("an integer is expected");
  Node made{.kind = NodeKind::integer};
  std::int64_t small = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), small);
  if (error == std::errc()) {
    made.integer = small;
    return add(std::move(made));
  }
  return add({.kind = NodeKind::big_integer, .text = plan_.graph.texts.emplace_back(text)});
}

NodeId TreeReader::real(const std::string& text) {
  Node made{.kind = NodeKind::real};
  double value = 0;
  if (text == "nan") {
    value = std::nan("");
  } else {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      fail_tree("a floating point number is expected");
  }
  made.real = value;
  return add(std::move(made));
}

NodeId TreeReader::special(const std::string& kind, const Value& inner, unsigned depth) {
  if (kind == "dict" || kind == "ordered" || kind == "counter") return members(kind, inner, depth);
  if (kind == "int") return integer(text_of(inner));
  if (kind == "float") return real(text_of(inner));
  if (kind == "complex") {
    const std::vector<Value>& parts = elements_of(inner);
    if (parts.size() != 2) fail_tree("a complex number of two parts is expected");
    Node made{.kind = NodeKind::complex};
    made.real = plan_.graph.at(real(text_of(parts[0]))).real;
    made.imaginary = plan_.graph.at(real(text_of(parts[1]))).real;
    return add(std::move(made));
  }
  if (kind == "bytes") return bytes(inner);
  if (kind == "bytesio") {
    if (elements_of(inner).size() != 2) fail_tree("a stream's bytes and its position are expected");
    ++plainer_;
    return bytes(inner.elements()[0]);
  }
  if (kind == "path" || kind == "datetime" || kind == "date" || kind == "time" ||
      kind == "decimal" || kind == "uuid") {
    ++plainer_;
    return add_text(text_of(inner));
  }
  if (kind == "timedelta") {
    ++plainer_;
    return container("tuple", inner, depth);
  }
  if (kind == "value" && !inner.is_object()) return node(inner, depth);
  if (kind == "dtype") {
    const std::string& name = text_of(inner);
    if (const auto dtype = torch_dtype_from_name(name))
      return add({.kind = NodeKind::dtype, .text = torch_dtype_name(*dtype)});
    if (const auto quantum = quantum_from_name(name))
      return add({.kind = NodeKind::dtype, .text = quantum_name(*quantum)});
    fail_tree("a dtype that is not known");
  }
  if (kind == "device" && !is_device(text_of(inner))) fail_tree("a device that is not known");
  if (kind == "device")
    return add({.kind = NodeKind::device, .text = plan_.graph.texts.emplace_back(text_of(inner))});
  if (kind == "array" || kind == "scalar") {
    ++arrays_;
    return whole_tensor(find(inner));
  }
  return container(kind, inner, depth);
}

NodeId TreeReader::bytes(const Value& base64) {
  std::size_t wrong = 0;
  const auto decoded = decode_base64(text_of(base64), wrong);
  if (!decoded) fail_tree("bytes that are no base64");
  const auto* const begin = reinterpret_cast<const char*>(decoded->data());
  return add(
      {.kind = NodeKind::bytes, .text = plan_.graph.texts.emplace_back(begin, decoded->size())});
}

NodeId TreeReader::container(const std::string& kind, const Value& inner, unsigned depth) {
  Node made;
  if (kind == "list") {
    made.kind = NodeKind::list;
  } else if (kind == "tuple") {
    made.kind = NodeKind::tuple;
  } else if (kind == "size") {
    made.kind = NodeKind::size;
  } else if (kind == "set") {
    made.kind = NodeKind::set;
  } else if (kind == "frozenset") {
    made.kind = NodeKind::frozenset;
    ++frozen_;
  } else {
    fail_tree("a kind of value that is not known");
  }
  const std::size_t length = path_.size();
  std::size_t place = 0;
  for (const Value& element : elements_of(inner)) {
    if (length > 0) path_ += '.';
    path_ += std::to_string(place++);
    made.items.push_back(node(element, depth + 1));
    path_.resize(length);
  }
  for (const NodeId item : made.items) {
    if (made.kind == NodeKind::size && plan_.graph.at(item).kind != NodeKind::integer)
      fail_tree("a size of something else than integers");
    if ((made.kind == NodeKind::set || made.kind == NodeKind::frozenset) && !is_hashable(item))
      fail_tree("a set of something that Python cannot hash");
  }
  return add(std::move(made));
}

NodeId TreeReader::members(const std::string& kind, const Value& pairs, unsigned depth) {
  const bool ordered = kind == "ordered";
  Node made{.kind = kind == "counter" ? NodeKind::counter : NodeKind::dict, .flag = ordered};
  if (const auto found = attributes_.find(path_); ordered && found != attributes_.end()) {
    const Value* const attributes = found->second;
    attributes_.erase(found);
    Node state{.kind = NodeKind::dict};
    state.items = {add_text("_metadata"), node(*attributes, depth + 1)};
    made.link = add(std::move(state));
  }
  const std::size_t length = path_.size();
  for (const Value& pair : elements_of(pairs)) {
    if (!pair.is_array() || pair.size() != 2) fail_tree("a key and a value are expected");
    const Value& key = pair.elements()[0];
    made.items.push_back(node(key, depth + 1));
    if (!is_hashable(made.items.back())) fail_tree("a key that Python cannot hash");
    if (length > 0) path_ += '.';
    path_ += key.kind() == Value::Kind::string   ? key.as_string()
             : key.kind() == Value::Kind::number ? key.number_text()
                                                 : "?";
    made.items.push_back(node(pair.elements()[1], depth + 1));
    path_.resize(length);
  }
  return add(std::move(made));
}

bool TreeReader::is_hashable(NodeId id) const {
  const Node& value = plan_.graph.at(id);
  const auto is = [&](NodeKind kind) { return value.kind == kind; };
  if (is(NodeKind::list) || is(NodeKind::dict) || is(NodeKind::counter) || is(NodeKind::set) ||
      is(NodeKind::tensor))
    return false;
  return std::all_of(value.items.begin(), value.items.end(),
                     [&](NodeId item) { return is_hashable(item); });
}

}  // namespace thalia::formats::pt
