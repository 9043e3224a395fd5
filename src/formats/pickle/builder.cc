// Memory is charged before it is taken: add() and keep() count every value and text, so that a
// pickle makes no more of them than the limits allow. What an opcode is given is checked for its
// kind by a need_…() before it is used. Errors name the place of the opcode.
#include "formats/pickle/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"

namespace thalia::formats::pt {
namespace {

// As thalia_checkpoint has it: no text has an integer of more digits, for Python to read it.
constexpr std::size_t kLongBytes = 14'000 / 8;

// Decimal digits of a number in bytes, most significant first; at most kLongBytes.
std::string decimal(std::span<const std::uint8_t> bytes) {
  constexpr std::uint32_t kBase = 1'000'000'000;
  std::vector<std::uint32_t> words((bytes.size() + 3) / 4);  // most significant first
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t from_end = bytes.size() - 1 - i;
    words[words.size() - 1 - from_end / 4] |= std::uint32_t{bytes[i]} << (8 * (from_end % 4));
  }
  std::vector<std::uint32_t> groups;  // of nine digits, least significant first
  for (std::size_t first = 0; first < words.size();) {
    std::uint64_t rest = 0;
    for (std::size_t i = first; i < words.size(); ++i) {
      const std::uint64_t value = (rest << 32) | words[i];
      words[i] = static_cast<std::uint32_t>(value / kBase);
      rest = value % kBase;
    }
    groups.push_back(static_cast<std::uint32_t>(rest));
    while (first < words.size() && words[first] == 0) ++first;
  }
  std::string digits = std::to_string(groups.back());
  for (std::size_t i = groups.size() - 1; i-- > 0;) digits += fmt::format("{:09}", groups[i]);
  return digits;
}

}  // namespace

Builder::Builder(Graph& graph, PickleName name, io::MemoryBudget& budget)
    : graph_(graph), name_(std::move(name)), budget_(budget) {}

ErrorContext Builder::place(std::string_view field) const {
  ErrorContext context{.section = name_.record, .field = std::string(field)};
  if (name_.offset) context.offset = *name_.offset + position_;
  return context;
}

void Builder::refuse(ErrorCode code, std::string_view field, std::string value, std::string bound,
                     std::string message) const {
  ErrorContext context = place(field);
  context.value = std::move(value);
  context.bound = std::move(bound);
  throw FormatError(code, std::move(message), std::move(context));
}

void Builder::unsupported(std::string message, std::string value) const {
  ErrorContext context = place("");
  context.value = std::move(value);
  throw UnsupportedError(ErrorCode::unsupported_feature, std::move(message), std::move(context));
}

NodeId Builder::add(Node node) {
  if (graph_.nodes.size() >= kNoNode - 1)
    refuse(ErrorCode::limit_exceeded, "", "2^32 values", "fewer");
  charge(sizeof(Node) + node.items.size() * sizeof(NodeId));
  graph_.nodes.push_back(std::move(node));
  return static_cast<NodeId>(graph_.nodes.size() - 1);
}

NodeId Builder::add_integer(std::int64_t value) {
  Node node{.kind = NodeKind::integer};
  node.integer = value;
  return add(std::move(node));
}

NodeId Builder::add_long(std::string_view bytes) {
  if (bytes.size() > kLongBytes) unsupported("an integer of more than 14,000 bits");
  const bool negative = !bytes.empty() && (static_cast<unsigned char>(bytes.back()) & 0x80) != 0;
  if (bytes.size() <= 8) {
    std::uint64_t value = negative ? ~std::uint64_t{0} : 0;
    for (std::size_t i = bytes.size(); i-- > 0;)
      value = (value << 8) | static_cast<unsigned char>(bytes[i]);
    return add_integer(static_cast<std::int64_t>(value));
  }
  std::vector<std::uint8_t> magnitude(bytes.rbegin(), bytes.rend());
  if (negative) {
    // Two's complement: the bits turned over, and 1 more.
    for (std::uint8_t& byte : magnitude) byte = static_cast<std::uint8_t>(~byte);
    for (std::size_t i = magnitude.size(); i-- > 0;)
      if (++magnitude[i] != 0) break;
  }
  while (!magnitude.empty() && magnitude.front() == 0) magnitude.erase(magnitude.begin());
  if (magnitude.size() < 8 || (magnitude.size() == 8 && magnitude.front() < 0x80)) {
    std::int64_t value = 0;
    for (const std::uint8_t byte : magnitude) value = (value << 8) | byte;
    return add_integer(negative ? -value : value);
  }
  charge(bytes.size() * 3);
  return add(
      {.kind = NodeKind::big_integer, .text = keep((negative ? "-" : "") + decimal(magnitude))});
}

NodeId Builder::add_text(std::string_view text) {
  if (!is_valid_utf8(text)) unsupported("a text that is no UTF-8", printable(text.substr(0, 100)));
  return add({.kind = NodeKind::text, .text = text});
}

std::string_view Builder::keep(std::string text) {
  charge(text.size() + sizeof(std::string));
  return graph_.texts.emplace_back(std::move(text));
}

NodeId Builder::find_global(std::string_view module, std::string_view name) {
  const std::optional<Symbol> symbol = find_symbol(module, name);
  if (!symbol) {
    throw UnsupportedError(
        ErrorCode::unsupported_feature,
        fmt::format("the file needs the Python object '{}.{}', which is not loaded{}",
                    printable(module), printable(name), symbol_advice(module, name)),
        place(""));
  }
  if (symbol->meaning == Meaning::dtype)
    return add({.kind = NodeKind::dtype, .symbol = *symbol, .text = symbol->name});
  if (symbol->meaning == Meaning::quantized_dtype)
    return add({.kind = NodeKind::dtype, .symbol = *symbol, .text = quantum_name(symbol->quantum)});
  return add({.kind = NodeKind::symbol, .symbol = *symbol});
}

NodeId Builder::make_object(NodeId cls, NodeId arguments) {
  const Symbol symbol = need_symbol(cls, "NEWOBJ");
  if (symbol.meaning == Meaning::script_class) {
    need_items(arguments, "arguments", 0, 0);
    return add({.kind = NodeKind::object});
  }
  // What Python 3 writes for OrderedDict() and set() in some protocols.
  return call(cls, arguments);
}

void Builder::set_state(NodeId object, NodeId state) {
  Node& node = graph_.nodes[object];
  if (node.kind == NodeKind::object || (node.kind == NodeKind::dict && node.flag)) {
    if (node.kind == NodeKind::dict) need(state, NodeKind::dict, "state");
    if (node.link != kNoNode) refuse(ErrorCode::inconsistent, "BUILD", "a second state", "");
    node.link = state;
  } else if (node.kind == NodeKind::array || node.kind == NodeKind::numpy_dtype) {
    numpy_state(object, state);
  } else {
    unsupported("a state for an object that has none here (BUILD)");
  }
}

Builder::Arguments Builder::need_items(NodeId id, std::string_view field, std::size_t least,
                                       std::size_t most) const {
  const Node& node = at(id);
  if (node.kind != NodeKind::tuple && node.kind != NodeKind::size && node.kind != NodeKind::list)
    refuse(ErrorCode::bad_value, field, "", "a tuple");
  if (node.items.size() < least || node.items.size() > most) {
    refuse(ErrorCode::bad_value, field, fmt::format("{} members", node.items.size()),
           least == most ? std::to_string(least) : fmt::format("{} to {}", least, most));
  }
  return node.items;
}

void Builder::need(NodeId id, NodeKind kind, std::string_view field) const {
  if (at(id).kind != kind)
    refuse(ErrorCode::bad_value, field, "", "", "a value of another kind than expected");
}

std::string_view Builder::need_text(NodeId id, std::string_view field) const {
  need(id, NodeKind::text, field);
  return at(id).text;
}

std::uint64_t Builder::need_count(NodeId id, std::string_view field) const {
  need(id, NodeKind::integer, field);
  const std::int64_t value = at(id).integer;
  if (value < 0) refuse(ErrorCode::out_of_bounds, field, std::to_string(value), "0 or more");
  return static_cast<std::uint64_t>(value);
}

bool Builder::need_flag(NodeId id, std::string_view field) const {
  need(id, NodeKind::boolean, field);
  return at(id).flag;
}

double Builder::need_number(NodeId id, std::string_view field) const {
  const Node& node = at(id);
  if (node.kind == NodeKind::integer) return static_cast<double>(node.integer);
  need(id, NodeKind::real, field);
  return node.real;
}

Symbol Builder::need_symbol(NodeId id, std::string_view field) const {
  need(id, NodeKind::symbol, field);
  return at(id).symbol;
}

Shape Builder::need_shape(NodeId id) const {
  const Arguments extents = need_items(id, "shape", 0, SIZE_MAX);
  if (extents.size() > Shape::kMaxRank) {
    unsupported(fmt::format("a tensor of {} dimensions, which are more than {}", extents.size(),
                            Shape::kMaxRank));
  }
  std::array<std::uint64_t, Shape::kMaxRank> counts{};
  for (std::size_t i = 0; i < extents.size(); ++i) counts[i] = need_count(extents[i], "shape");
  return Shape(std::span<const std::uint64_t>(counts.data(), extents.size()));
}

}  // namespace thalia::formats::pt
