#include "formats/pickle/machine.h"

#include <fmt/format.h>

#include <utility>

#include "base/utf8.h"
#include "formats/pickle/machine_state.h"
#include "formats/pickle/opcodes.h"

namespace thalia::formats::pt {

void Machine::run() {
  while (!stopped_) {
    builder_.set_position(at_);
    const auto code = static_cast<std::uint8_t>(take(1)[0]);
    if (at_ == 1 && code != op::kProto) {
      builder_.refuse(ErrorCode::bad_magic, "", opcode_text(code), "0x80",
                      "no pickle of protocol 2 or later");
    }
    if (!step(code))
      builder_.unsupported("an opcode that no file of tensors needs", opcode_text(code));
  }
  if (at_ != text_.size()) {
    builder_.refuse(ErrorCode::inconsistent, "STOP", fmt::format("{} bytes", text_.size() - at_),
                    "0", "there is more after the end of the pickle");
  }
}

std::string_view Machine::take(std::uint64_t count) {
  if (count > text_.size() - at_) {
    builder_.refuse(ErrorCode::truncated, "", fmt::format("{} bytes", text_.size() - at_),
                    fmt::format("at least {}", count));
  }
  const std::string_view taken = text_.substr(at_, count);
  at_ += count;
  return taken;
}

std::string_view Machine::take_line() {
  const std::size_t end = text_.find('\n', at_);
  if (end == std::string_view::npos)
    builder_.refuse(ErrorCode::truncated, "GLOBAL", "", "", "a line without an end");
  const std::string_view line = text_.substr(at_, end - at_);
  at_ = end + 1;
  return line;
}

NodeId Machine::pop() {
  const std::size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= floor)
    builder_.refuse(ErrorCode::bad_value, "", "", "", "the opcode takes more than there is");
  const NodeId id = stack_.back();
  stack_.pop_back();
  return id;
}

NodeId Machine::top(std::string_view what) const {
  const std::size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= floor)
    builder_.refuse(ErrorCode::bad_value, what, "", "", "the opcode takes more than there is");
  return stack_.back();
}

std::vector<NodeId> Machine::pop_marked() {
  if (marks_.empty()) builder_.refuse(ErrorCode::bad_value, "", "", "", "there is no mark");
  std::vector<NodeId> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()),
                            stack_.end());
  stack_.resize(marks_.back());
  marks_.pop_back();
  return items;
}

void Machine::make_tuple(std::size_t count) {
  std::vector<NodeId> items(count);
  for (std::size_t i = count; i-- > 0;) items[i] = pop();
  push(builder_.add({.kind = NodeKind::tuple, .items = std::move(items)}));
}

// To the container on the top of the stack.
void Machine::add_items(NodeKind kind, std::vector<NodeId> items) {
  const NodeId id = top("APPENDS");
  if (kind == NodeKind::dict && items.size() % 2 != 0)
    builder_.refuse(ErrorCode::bad_value, "SETITEMS", "", "", "a key without a value");
  builder_.charge(2 * items.size() * sizeof(NodeId));
  Node& node = graph_.nodes[id];
  if (node.kind != kind)
    builder_.refuse(ErrorCode::bad_value, "APPENDS", "", "", "items for something that has none");
  node.items.insert(node.items.end(), items.begin(), items.end());
}

void Machine::remember(std::uint64_t place) {
  const NodeId id = top("PUT");
  // Picklers count from 0, and each number takes a byte and more.
  if (place >= text_.size()) {
    builder_.refuse(ErrorCode::out_of_bounds, "PUT", std::to_string(place),
                    fmt::format("less than the pickle's {} bytes", text_.size()));
  }
  if (place >= memo_.size()) {
    builder_.charge((place + 1 - memo_.size()) * 2 * sizeof(NodeId));
    memo_.resize(place + 1, kNoNode);
  }
  memos_ += memo_[place] == kNoNode ? 1 : 0;
  memo_[place] = id;
}

void Machine::recall(std::uint64_t place) {
  if (place >= memo_.size() || memo_[place] == kNoNode)
    builder_.refuse(ErrorCode::out_of_bounds, "GET", std::to_string(place), "", "no such memo");
  push(memo_[place]);
}

// Python 2 wrote both alike.
void Machine::bytes_or_text(std::string_view value) {
  push(builder_.add(
      {.kind = is_valid_utf8(value) ? NodeKind::text : NodeKind::bytes, .text = value}));
}

void Machine::global(std::string_view module, std::string_view name) {
  push(builder_.find_global(module, name));
}

Graph read_pickle(ByteSpan pickle, PickleName name, io::MemoryBudget& budget) {
  Graph graph{.pickle_bytes = pickle.size()};
  Machine(pickle, graph, std::move(name), budget).run();
  return graph;
}

}  // namespace thalia::formats::pt
