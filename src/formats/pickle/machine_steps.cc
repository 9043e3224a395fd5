// What each opcode does. False from all: it is not one that is known here.
#include <bit>
#include <utility>

#include "base/fail.h"
#include "format/little_endian.h"
#include "formats/pickle/machine_state.h"
#include "formats/pickle/opcodes.h"

namespace thalia::formats::pt {

bool Machine::step(std::uint8_t code) {
  return step_scalar(code) || step_container(code) || step_object(code);
}

bool Machine::step_scalar(std::uint8_t code) {
  switch (code) {
    case op::kNone:
      if (none_ == kNoNode) none_ = builder_.add({.kind = NodeKind::none});
      push(none_);
      return true;
    case op::kNewtrue:
    case op::kNewfalse:
      make(NodeKind::boolean, code == op::kNewtrue);
      return true;
    case op::kBinint:
      push(builder_.add_integer(
          static_cast<std::int32_t>(static_cast<std::uint32_t>(take_number<format::le32>()))));
      return true;
    case op::kBinint1:
      push(builder_.add_integer(static_cast<unsigned char>(take(1)[0])));
      return true;
    case op::kBinint2:
      push(builder_.add_integer(std::uint16_t{take_number<format::le16>()}));
      return true;
    case op::kLong1:
      push(builder_.add_long(take(static_cast<unsigned char>(take(1)[0]))));
      return true;
    case op::kLong4:
      // A negative length is one of 2^31 or more here, and past the end.
      push(builder_.add_long(take(std::uint32_t{take_number<format::le32>()})));
      return true;
    case op::kBinfloat: {
      std::uint64_t bits = 0;
      for (const char byte : take(8)) bits = (bits << 8) | static_cast<unsigned char>(byte);
      Node node{.kind = NodeKind::real};
      node.real = std::bit_cast<double>(bits);
      push(builder_.add(std::move(node)));
      return true;
    }
    case op::kShortBinunicode:
      push(builder_.add_text(take(static_cast<unsigned char>(take(1)[0]))));
      return true;
    case op::kBinunicode:
      push(builder_.add_text(take(std::uint32_t{take_number<format::le32>()})));
      return true;
    case op::kBinunicode8:
      push(builder_.add_text(take(take_number<format::le64>())));
      return true;
    case op::kShortBinstring:
      bytes_or_text(take(static_cast<unsigned char>(take(1)[0])));
      return true;
    case op::kBinstring:
      bytes_or_text(take(std::uint32_t{take_number<format::le32>()}));
      return true;
    case op::kShortBinbytes:
      push(builder_.add(
          {.kind = NodeKind::bytes, .text = take(static_cast<unsigned char>(take(1)[0]))}));
      return true;
    case op::kBinbytes:
      push(builder_.add(
          {.kind = NodeKind::bytes, .text = take(std::uint32_t{take_number<format::le32>()})}));
      return true;
    case op::kBinbytes8:
    case op::kBytearray8:
      ++graph_.plainer;
      push(builder_.add({.kind = NodeKind::bytes, .text = take(take_number<format::le64>())}));
      return true;
    default:
      return false;
  }
}

bool Machine::step_container(std::uint8_t code) {
  switch (code) {
    case op::kMark:
      builder_.charge(sizeof(std::size_t));
      marks_.push_back(stack_.size());
      return true;
    case op::kEmptyTuple:
      if (empty_tuple_ == kNoNode) empty_tuple_ = builder_.add({.kind = NodeKind::tuple});
      push(empty_tuple_);
      return true;
    case op::kTuple1:
    case op::kTuple2:
    case op::kTuple3:
      make_tuple(std::size_t{1} + code - op::kTuple1);
      return true;
    case op::kTuple:
      push(builder_.add({.kind = NodeKind::tuple, .items = pop_marked()}));
      return true;
    case op::kList:
      push(builder_.add({.kind = NodeKind::list, .items = pop_marked()}));
      return true;
    case op::kFrozenset:
      push(builder_.add({.kind = NodeKind::frozenset, .items = pop_marked()}));
      return true;
    case op::kEmptyList:
      make(NodeKind::list);
      return true;
    case op::kEmptyDict:
      make(NodeKind::dict);
      return true;
    case op::kEmptySet:
      make(NodeKind::set);
      return true;
    case op::kDict: {
      std::vector<NodeId> items = pop_marked();
      make(NodeKind::dict);
      add_items(NodeKind::dict, std::move(items));
      return true;
    }
    case op::kAppend:
      add_items(NodeKind::list, {pop()});
      return true;
    case op::kAppends:
      add_items(NodeKind::list, pop_marked());
      return true;
    case op::kAdditems:
      add_items(NodeKind::set, pop_marked());
      return true;
    case op::kSetitem: {
      const NodeId value = pop();
      const NodeId key = pop();
      add_items(NodeKind::dict, {key, value});
      return true;
    }
    case op::kSetitems:
      add_items(NodeKind::dict, pop_marked());
      return true;
    default:
      return false;
  }
}

bool Machine::step_object(std::uint8_t code) {
  switch (code) {
    case op::kProto: {
      const auto protocol = static_cast<unsigned char>(take(1)[0]);
      if (at_ != 2 || protocol < 2 || protocol > 5) {
        throw UnsupportedError(
            ErrorCode::unsupported_version, "a pickle of another protocol",
            {.section = "data.pkl", .value = std::to_string(protocol), .bound = "2 to 5"});
      }
      graph_.protocol = protocol;
      return true;
    }
    case op::kFrame:
      // Says how much to read at once; all of it is there already.
      if (const std::uint64_t length = take_number<format::le64>(); length > text_.size() - at_)
        builder_.refuse(ErrorCode::truncated, "FRAME", std::to_string(length),
                        std::to_string(text_.size() - at_));
      return true;
    case op::kStop:
      graph_.root = pop();
      if (!stack_.empty() || !marks_.empty())
        builder_.refuse(ErrorCode::inconsistent, "STOP", "", "", "values are left on the stack");
      stopped_ = true;
      return true;
    case op::kPop:
      // Takes a mark if one is on top.
      if (!marks_.empty() && marks_.back() == stack_.size()) {
        marks_.pop_back();
      } else {
        pop();
      }
      return true;
    case op::kPopMark:
      pop_marked();
      return true;
    case op::kDup:
      push(top("DUP"));
      return true;
    case op::kBinput:
      remember(static_cast<unsigned char>(take(1)[0]));
      return true;
    case op::kLongBinput:
      remember(std::uint32_t{take_number<format::le32>()});
      return true;
    case op::kMemoize:
      remember(memos_);
      return true;
    case op::kBinget:
      recall(static_cast<unsigned char>(take(1)[0]));
      return true;
    case op::kLongBinget:
      recall(std::uint32_t{take_number<format::le32>()});
      return true;
    case op::kGlobal: {
      const std::string_view module = take_line();
      global(module, take_line());
      return true;
    }
    case op::kStackGlobal: {
      const NodeId name = pop();
      const NodeId module = pop();
      const Node& name_node = graph_.at(name);
      const Node& module_node = graph_.at(module);
      if (name_node.kind != NodeKind::text || module_node.kind != NodeKind::text)
        builder_.refuse(ErrorCode::bad_value, "STACK_GLOBAL", "", "two texts");
      global(module_node.text, name_node.text);
      return true;
    }
    case op::kReduce: {
      const NodeId arguments = pop();
      push(builder_.call(pop(), arguments));
      return true;
    }
    case op::kNewobj: {
      const NodeId arguments = pop();
      push(builder_.make_object(pop(), arguments));
      return true;
    }
    case op::kBuild: {
      const NodeId state = pop();
      builder_.set_state(top("BUILD"), state);
      return true;
    }
    case op::kBinpersid:
      push(builder_.load_persistent(pop()));
      return true;
    default:
      return false;
  }
}

}  // namespace thalia::formats::pt
