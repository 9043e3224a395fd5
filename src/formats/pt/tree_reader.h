// A tree of thalia_checkpoint as a graph: the inverse of tree.h, for trees that anybody wrote.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/pt/plan.h"
#include "thalia/state/value.h"

namespace thalia::formats::pt {

/// Thrown for a tree that does not fit the tensors, or breaks the rules.
struct TreeFault {
  std::string what;
};

class TreeReader {
 public:
  TreeReader(PtPlan& plan, const SinkInput& input);

  /// @throws TreeFault.
  NodeId read(const Value& node);
  /// What torch calls _metadata, of OrderedDicts by their paths.
  void set_attributes(const Value& attributes);

  /// A tensor of the sink as it is.
  NodeId whole_tensor(std::size_t i);
  NodeId add(Node node);
  NodeId add_text(std::string text);

  bool is_used(std::size_t i) const { return storages_[i] != kUnused; }
  std::uint64_t arrays() const noexcept { return arrays_; }
  std::uint64_t frozen() const noexcept { return frozen_; }
  /// Values that become plainer ones: a deque as a list, a path as a text, a stream as its bytes,
  /// an object of a class of its own as what it is made of.
  std::uint64_t plainer() const noexcept { return plainer_; }

 private:
  static constexpr std::uint32_t kUnused = UINT32_MAX;

  NodeId node(const Value& value, unsigned depth);
  NodeId number(const std::string& text);
  NodeId integer(const std::string& text);
  NodeId real(const std::string& text);
  NodeId special(const std::string& kind, const Value& inner, unsigned depth);
  NodeId container(const std::string& kind, const Value& inner, unsigned depth);
  NodeId bytes(const Value& base64);
  NodeId members(const std::string& kind, const Value& pairs, unsigned depth);
  NodeId tensor(const Value& value);
  void set_view(TensorRecord& record, const Value& view, const TensorLayout& layout);
  void set_quantizer(TensorRecord& record, const Value& quantized);
  bool is_hashable(NodeId id) const;
  std::size_t find(const Value& name) const;
  std::uint32_t storage_of(std::size_t i);
  std::uint32_t add_storage(std::size_t i, PayloadPart part, DType dtype, std::uint64_t count);
  NodeId add_plain(std::uint32_t storage, DType dtype, const Shape& shape);
  NodeId add_sparse(std::size_t i, bool coalesced);
  std::string path_;

  PtPlan& plan_;
  const SinkInput& input_;
  std::unordered_map<std::string_view, std::size_t> places_;
  std::vector<std::uint32_t> storages_;  ///< of each tensor of the sink, its first
  std::unordered_map<std::string, const Value*> attributes_;
  std::uint64_t arrays_ = 0, frozen_ = 0, plainer_ = 0;
};

/// Strides of elements that follow each other row by row.
void set_row_strides(TensorRecord& tensor) noexcept;

}  // namespace thalia::formats::pt
