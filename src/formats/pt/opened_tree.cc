#include "formats/pt/opened_tree.h"

#include <algorithm>
#include <string>
#include <utility>

#include "formats/pt/gather.h"
#include "formats/pt/listing.h"
#include "formats/pt/opened.h"
#include "formats/pt/plan.h"
#include "formats/pt/tree.h"
#include "state/tensor/counted_tensor.h"
#include "thalia/state/value.h"

namespace thalia::formats::pt {
namespace {

// A tensor of the tree, and the stored one that it lies in.
struct TreePart {
  const TensorRecord* record;
  std::size_t stored;
  bool is_whole;  ///< it is that one
};

bool is_whole(const TensorRecord& record, const TensorLayout& layout) {
  if (record.form == Form::sparse_coo || record.form == Form::sparse_csr) return true;
  return record.dtype == layout.dtype && record.shape == layout.shape && record.offset == 0 &&
         is_contiguous(record);
}

class OpenedTree final : public OpenedFile {
 public:
  OpenedTree(std::shared_ptr<const OpenedFile> source, PtPlan plan, const ReadLimits& limits)
      : source_(std::move(source)), plan_(std::move(plan)), limits_(limits) {
    io::MemoryBudget budget(limits_, plan_.graph.pickle_bytes);
    const PtTree tree = make_tree(plan_.graph, limits_, budget);
    listing_ = list_stored(plan_.graph, tree, {}, budget);
    std::vector<std::size_t> uses(source_->facts().tensors.size());
    for (const Stored& one : listing_.stored) {
      const TreePart part = part_of(one);
      parts_.push_back(part);
      if (!part.is_whole && !is_contiguous(*part.record)) {
        const std::uint64_t bytes = *part.record->shape.byte_length(part.record->dtype);
        if (__builtin_add_overflow(view_bytes_, bytes, &view_bytes_)) view_bytes_ = UINT64_MAX;
      }
      differs_ = differs_ || !part.is_whole || ++uses[part.stored] > 1;
    }
  }

  /// Whether these are other tensors than those of the source.
  bool differs() const noexcept { return differs_; }
  std::vector<std::size_t> stored_numbers() const {
    std::vector<std::size_t> stored;
    for (const TreePart& part : parts_) stored.push_back(part.stored);
    return stored;
  }

  void fill(const Value& metadata) {
    facts_ = source_->facts();
    facts_.tensors.clear();
    for (std::size_t i = 0; i < parts_.size(); ++i) facts_.tensors.push_back(described(i));
    facts_.losses.push_back(shared_memory_loss(listing_));
    Value changed = Value::object();
    for (const Value::Member& member : metadata.members())
      if (member.name != kTreeMember) changed.add(member.name, member.value);
    Value tree = Value::object();
    tree.add("version", Value(kTreeVersion));
    tree.add("tree", parse_json(listing_.tree, limits_));
    changed.add(std::string(kTreeMember), std::move(tree));
    facts_.metadata = to_json(changed);
  }

  Tensor read(std::size_t i) const override {
    const TreePart& part = parts_[i];
    Tensor whole = source_->read(part.stored);
    if (part.is_whole) return whole;
    const TensorRecord& record = *part.record;
    const TensorLayout layout{.dtype = record.dtype, .shape = record.shape};
    const std::uint64_t bytes = *record.shape.byte_length(record.dtype);
    if (is_contiguous(record)) {
      const std::uint64_t begin = bytes == 0 ? 0 : record.offset * (dtype_bits(record.dtype) / 8);
      return Tensor::adopt(layout, whole.bytes().subspan(begin, bytes),
                           std::make_shared<const Tensor>(whole));
    }
    io::check_work("view", view_bytes_, limits_, facts_.file_bytes);
    io::MemoryBudget budget(limits_, whole.bytes().size());
    return state::counted_tensor(budget, "view", layout, [&](MutableByteSpan out) {
      gather(whole.bytes(), record.dtype, record.shape, record.stride, record.offset, out);
    });
  }
  void visit(std::size_t i, const PieceSink& sink) const override {
    if (parts_[i].is_whole) return source_->visit(parts_[i].stored, sink);
    OpenedFile::visit(i, sink);
  }
  void check(std::size_t i) const override { source_->check(parts_[i].stored); }

 private:
  TreePart part_of(const Stored& one) const {
    const auto record_of = [&](NodeId id) -> const TensorRecord& {
      return plan_.graph.tensors[plan_.graph.at(id).index];
    };
    const TensorRecord& record = record_of(one.node);
    const bool sparse = record.form == Form::sparse_coo || record.form == Form::sparse_csr;
    const std::uint32_t storage = sparse ? record_of(record.indices).storage : record.storage;
    const std::size_t stored = plan_.payloads[storage].tensor;
    return {&record, stored, is_whole(record, source_->facts().tensors[stored].layout)};
  }

  AnyTensor described(std::size_t i) const {
    const TreePart& part = parts_[i];
    AnyTensor tensor = source_->facts().tensors[part.stored];
    tensor.name = listing_.stored[i].name;
    if (part.is_whole) return tensor;
    tensor.layout = {.dtype = part.record->dtype, .shape = part.record->shape};
    tensor.in_place = tensor.in_place && is_contiguous(*part.record);
    tensor.offset = tensor.stored_bytes = std::nullopt;
    return tensor;
  }

  std::shared_ptr<const OpenedFile> source_;
  PtPlan plan_;
  ReadLimits limits_;
  PtListing listing_;
  std::vector<TreePart> parts_;
  bool differs_ = false;
  std::uint64_t view_bytes_ = 0;  ///< of all views that are gathered
};

}  // namespace

std::optional<TreeTensors> tree_tensors(std::shared_ptr<const OpenedFile> source,
                                        const ReadLimits& limits) {
  const OpenedFacts& facts = source->facts();
  if (facts.metadata.find(kTreeMember) == std::string::npos) return std::nullopt;
  const Value metadata = parse_json(facts.metadata, limits);
  SinkInput input;
  for (const AnyTensor& tensor : facts.tensors)
    input.tensors.push_back({.name = tensor.name, .layout = tensor.layout});
  std::optional<PtPlan> plan = plan_of_tree(input, metadata);
  if (!plan) return std::nullopt;
  plan->graph.pickle_bytes = facts.metadata.size();
  auto opened = std::make_shared<OpenedTree>(std::move(source), std::move(*plan), limits);
  if (!opened->differs()) return std::nullopt;
  opened->fill(metadata);
  std::vector<std::size_t> stored = opened->stored_numbers();
  return TreeTensors{.source = std::move(opened), .stored = std::move(stored)};
}

}  // namespace thalia::formats::pt
