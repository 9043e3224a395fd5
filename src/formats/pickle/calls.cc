// What calls of plain functions and classes stand for. No list of arguments is kept by reference:
// adding a value moves the others.
#include <fmt/format.h>

#include <utility>

#include "base/utf8.h"
#include "formats/pickle/builder.h"

namespace thalia::formats::pt {
namespace {

constexpr std::size_t kAny = SIZE_MAX;
// torch numbers its storages. Each is looked up by its key, and any number may have the same one.
constexpr std::size_t kLongestKey = 255;

}  // namespace

NodeId Builder::call(NodeId function, NodeId arguments) {
  const Symbol symbol = need_symbol(function, "REDUCE");
  need(arguments, NodeKind::tuple, "REDUCE");
  const std::vector<NodeId> items = at(arguments).items;
  if (symbol.meaning <= Meaning::rebuild_meta_tensor) return rebuild(symbol, items);
  if (symbol.meaning <= Meaning::numpy_dtype) return numpy_call(symbol, items);
  if (symbol.meaning <= Meaning::script_tagged) return plain_call(symbol, items);
  unsupported(fmt::format("a call of '{}'", printable(symbol.name)));
}

NodeId Builder::plain_call(const Symbol& symbol, const std::vector<NodeId>& arguments) {
  const auto is = [&](Meaning meaning) { return symbol.meaning == meaning; };
  const bool two = is(Meaning::complex) || is(Meaning::encode) || is(Meaning::script_tagged);
  const bool one = is(Meaning::get_layout) || is(Meaning::version_text) || is(Meaning::size) ||
                   is(Meaning::device) || is(Meaning::script_list);
  const std::size_t least = two ? 2 : one ? 1 : 0;
  const std::size_t most = two || is(Meaning::device) ? 2 : 1;
  if (arguments.size() < least || arguments.size() > most) {
    refuse(ErrorCode::bad_value, symbol.name, fmt::format("{} arguments", arguments.size()),
           fmt::format("{} to {}", least, most));
  }
  if (is(Meaning::get_layout))
    return add({.kind = NodeKind::layout, .text = need_text(arguments[0], symbol.name)});
  if (is(Meaning::size)) {
    std::vector<NodeId> items;
    for (const NodeId item : need_items(arguments[0], symbol.name, 0, kAny)) {
      need(item, NodeKind::integer, symbol.name);
      items.push_back(item);
    }
    return add({.kind = NodeKind::size, .items = std::move(items)});
  }
  if (is(Meaning::device)) return device_text(arguments);
  if (is(Meaning::complex)) {
    Node node{.kind = NodeKind::complex};
    node.real = need_number(arguments[0], symbol.name);
    node.imaginary = need_number(arguments[1], symbol.name);
    return add(std::move(node));
  }
  if (is(Meaning::default_dict) || is(Meaning::bytearray)) ++graph_.plainer;
  if (is(Meaning::bytes) || is(Meaning::bytearray)) {
    if (arguments.empty()) return add({.kind = NodeKind::bytes});
    need(arguments[0], NodeKind::bytes, symbol.name);
    return add({.kind = NodeKind::bytes, .text = at(arguments[0]).text});
  }
  if (is(Meaning::encode)) return encoded_bytes(arguments);
  if (is(Meaning::version_text)) need(arguments[0], NodeKind::text, symbol.name);
  if (is(Meaning::script_list)) need(arguments[0], NodeKind::list, symbol.name);
  if (one || two) return arguments[0];
  if (is(Meaning::default_dict)) {
    // What makes missing members is not kept.
    if (!arguments.empty() && at(arguments[0]).kind != NodeKind::none) {
      const Symbol factory = need_symbol(arguments[0], symbol.name);
      if (factory.meaning != Meaning::builtin_type && factory.meaning != Meaning::set &&
          factory.meaning != Meaning::ordered_dict)
        unsupported(fmt::format("a defaultdict of '{}'", printable(factory.name)));
    }
    return add({.kind = NodeKind::dict});
  }
  if (is(Meaning::set)) return container(NodeKind::set, arguments, symbol);
  if (is(Meaning::frozenset)) return container(NodeKind::frozenset, arguments, symbol);
  return container(is(Meaning::counter) ? NodeKind::counter : NodeKind::dict, arguments, symbol);
}

NodeId Builder::container(NodeKind kind, const std::vector<NodeId>& arguments,
                          const Symbol& symbol) {
  Node node{.kind = kind, .flag = symbol.meaning == Meaning::ordered_dict};
  if (arguments.empty()) return add(std::move(node));
  if (kind == NodeKind::counter) need(arguments[0], NodeKind::dict, symbol.name);
  if (at(arguments[0]).kind == NodeKind::dict &&
      (kind == NodeKind::dict || kind == NodeKind::counter)) {
    node.items = at(arguments[0]).items;
    return add(std::move(node));
  }
  for (const NodeId item : need_items(arguments[0], symbol.name, 0, kAny)) {
    if (kind != NodeKind::dict) {
      node.items.push_back(item);
      continue;
    }
    // Pairs, as Python 2 writes an OrderedDict.
    for (const NodeId part : need_items(item, symbol.name, 2, 2)) node.items.push_back(part);
  }
  return add(std::move(node));
}

NodeId Builder::encoded_bytes(const std::vector<NodeId>& arguments) {
  const std::string_view text = need_text(arguments[0], "encode");
  const std::string_view encoding = need_text(arguments[1], "encode");
  if (encoding != "latin1" && encoding != "latin-1")
    unsupported("bytes in another encoding than latin1", printable(encoding));
  charge(text.size());
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      bytes.push_back(text[i]);
    } else if ((byte == 0xc2 || byte == 0xc3) && i + 1 < text.size()) {
      const auto next = static_cast<unsigned char>(text[++i]);
      bytes.push_back(static_cast<char>(((byte & 3) << 6) | (next & 0x3f)));
    } else {
      refuse(ErrorCode::bad_value, "encode", "", "", "a character that latin1 does not have");
    }
  }
  return add({.kind = NodeKind::bytes, .text = keep(std::move(bytes))});
}

NodeId Builder::device_text(const std::vector<NodeId>& arguments) {
  const std::string_view type = need_text(arguments[0], "device");
  if (arguments.size() == 1) return add({.kind = NodeKind::device, .text = type});
  const std::uint64_t index = need_count(arguments[1], "device");
  return add({.kind = NodeKind::device, .text = keep(fmt::format("{}:{}", type, index))});
}

NodeId Builder::load_persistent(NodeId id) {
  need(id, NodeKind::tuple, "BINPERSID");
  const std::vector<NodeId> parts = at(id).items;
  if (parts.size() != 5) {
    refuse(ErrorCode::bad_value, "BINPERSID", fmt::format("{} members", parts.size()), "5");
  }
  if (need_text(parts[0], "BINPERSID") != "storage")
    unsupported("a persistent id of something else than a storage");
  const Symbol type = need_symbol(parts[1], "storage");
  if (type.meaning != Meaning::storage_type)
    refuse(ErrorCode::bad_value, "storage", printable(type.name), "a type of storages");
  Storage storage{.key = need_text(parts[2], "key"),
                  .dtype = type.dtype,
                  .quantum = type.quantum,
                  .untyped = type.untyped,
                  .count = need_count(parts[4], "numel")};
  if (storage.key.size() > kLongestKey) {
    refuse(ErrorCode::out_of_bounds, "key", fmt::format("{} bytes", storage.key.size()),
           fmt::format("at most {}", kLongestKey));
  }
  need_text(parts[3], "location");
  const std::uint64_t width = dtype_bits(storage.dtype) / 8;
  if (storage.count > UINT64_MAX / width) {
    refuse(ErrorCode::out_of_bounds, "numel", std::to_string(storage.count),
           std::to_string(UINT64_MAX / width));
  }
  storage.bytes = storage.count * width;
  charge(sizeof storage);
  graph_.storages.push_back(storage);
  return add(
      {.kind = NodeKind::storage, .index = static_cast<std::uint32_t>(graph_.storages.size() - 1)});
}

}  // namespace thalia::formats::pt
