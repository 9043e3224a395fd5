// The state of a reader of pickles: what the opcodes work on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/pickle/builder.h"
#include "thalia/types.h"

namespace thalia::formats::pt {

class Machine {
 public:
  Machine(ByteSpan pickle, Graph& graph, PickleName name, io::MemoryBudget& budget)
      : text_(reinterpret_cast<const char*>(pickle.data()), pickle.size()),
        graph_(graph),
        builder_(graph, std::move(name), budget) {}

  void run();

 private:
  std::string_view take(std::uint64_t count);
  template <typename T>
  T take_number() {
    T number;
    std::memcpy(&number, take(sizeof number).data(), sizeof number);
    return number;
  }
  std::string_view take_line();

  void push(NodeId id) {
    builder_.charge(sizeof(NodeId));
    stack_.push_back(id);
  }
  NodeId pop();
  NodeId top(std::string_view what) const;
  std::vector<NodeId> pop_marked();
  void make(NodeKind kind, bool flag = false) { push(builder_.add({.kind = kind, .flag = flag})); }
  void make_tuple(std::size_t count);
  void add_items(NodeKind kind, std::vector<NodeId> items);
  void remember(std::uint64_t place);
  void recall(std::uint64_t place);
  void bytes_or_text(std::string_view value);
  void global(std::string_view module, std::string_view name);

  bool step(std::uint8_t code);
  bool step_scalar(std::uint8_t code);
  bool step_container(std::uint8_t code);
  bool step_object(std::uint8_t code);

  std::string_view text_;
  std::size_t at_ = 0;
  Graph& graph_;
  Builder builder_;
  std::vector<NodeId> stack_;
  std::vector<std::size_t> marks_;
  std::vector<NodeId> memo_;  ///< by their numbers; kNoNode: none
  std::uint64_t memos_ = 0;   ///< of them that there are
  NodeId empty_tuple_ = kNoNode, none_ = kNoNode;
  bool stopped_ = false;
};

}  // namespace thalia::formats::pt
