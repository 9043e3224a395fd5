// Makes the values of a graph: what a pickle's opcodes put on the stack, and what its calls stand
// for. Nothing is called: each known name is an entry of a table, and its arguments are checked.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/pickle/value.h"
#include "io/memory/allocation_limit.h"
#include "thalia/error.h"

namespace thalia::formats::pt {

/// Where the pickle being read is, for messages.
struct PickleName {
  std::string record = "data.pkl";
  std::optional<std::uint64_t> offset{};  ///< in the file; nullopt where the record is compressed
};

class Builder {
 public:
  Builder(Graph& graph, PickleName name, io::MemoryBudget& budget);

  /// Counts memory that the pickle makes the reader take. @throws FormatError (limit_exceeded).
  void charge(std::uint64_t bytes) { budget_.take(name_.record, bytes); }
  NodeId add(Node node);
  NodeId add_integer(std::int64_t value);
  /// Adds the integer of little-endian bytes in two's complement.
  NodeId add_long(std::string_view bytes);
  /// @throws UnsupportedError unless it is UTF-8.
  NodeId add_text(std::string_view text);
  std::string_view keep(std::string text);

  NodeId find_global(std::string_view module, std::string_view name);
  NodeId call(NodeId function, NodeId arguments);
  NodeId make_object(NodeId cls, NodeId arguments);
  void set_state(NodeId object, NodeId state);
  NodeId load_persistent(NodeId id);

  /// The opcode that is being carried out.
  void set_position(std::uint64_t position) noexcept { position_ = position; }
  [[noreturn]] void refuse(ErrorCode code, std::string_view field, std::string value,
                           std::string bound, std::string message = {}) const;
  [[noreturn]] void unsupported(std::string message, std::string value = {}) const;

  Graph& graph() noexcept { return graph_; }
  const Node& at(NodeId id) const noexcept { return graph_.nodes[id]; }

 private:
  using Arguments = std::span<const NodeId>;

  ErrorContext place(std::string_view field) const;
  Arguments need_items(NodeId id, std::string_view field, std::size_t least,
                       std::size_t most) const;
  void need(NodeId id, NodeKind kind, std::string_view field) const;
  std::string_view need_text(NodeId id, std::string_view field) const;
  std::uint64_t need_count(NodeId id, std::string_view field) const;
  bool need_flag(NodeId id, std::string_view field) const;
  double need_number(NodeId id, std::string_view field) const;
  Symbol need_symbol(NodeId id, std::string_view field) const;
  Shape need_shape(NodeId id) const;

  NodeId container(NodeKind kind, const std::vector<NodeId>& arguments, const Symbol& symbol);
  NodeId plain_call(const Symbol& symbol, const std::vector<NodeId>& arguments);
  NodeId encoded_bytes(const std::vector<NodeId>& arguments);
  NodeId device_text(const std::vector<NodeId>& arguments);

  NodeId rebuild(const Symbol& symbol, const std::vector<NodeId>& arguments);
  NodeId rebuild_strided(const std::vector<NodeId>& arguments, bool typed);
  NodeId rebuild_quantized(const std::vector<NodeId>& arguments);
  NodeId rebuild_sparse(const std::vector<NodeId>& arguments);
  NodeId rebuild_parameter(const std::vector<NodeId>& arguments, bool with_state);
  NodeId rebuild_typed(const std::vector<NodeId>& arguments);
  void sparse_coo(TensorRecord& tensor, Arguments data);
  void sparse_csr(TensorRecord& tensor, Arguments data);
  void place_in_storage(TensorRecord& tensor, NodeId storage, NodeId offset, NodeId shape,
                        NodeId stride);
  void check_reach(const TensorRecord& tensor) const;
  const TensorRecord& need_part(NodeId id, std::string_view field, unsigned rank) const;
  NodeId add_tensor(const TensorRecord& tensor);

  NodeId numpy_call(const Symbol& symbol, const std::vector<NodeId>& arguments);
  void numpy_state(NodeId object, NodeId state);
  NodeId add_array(const ArrayRecord& array, bool scalar);
  void set_element_type(ArrayRecord& array, NodeId dtype) const;
  void check_array(const ArrayRecord& array) const;

  Graph& graph_;
  PickleName name_;
  io::MemoryBudget& budget_;
  std::uint64_t position_ = 0;
};

}  // namespace thalia::formats::pt
