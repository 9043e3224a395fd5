// The metadata may be anybody's: a tree that does not fit the tensors is a loss that is reported
// and no error, and all tensors are then in one flat dictionary. Tensors that torch has no type
// for are refused before that.
#include "formats/pt/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/utf8.h"
#include "formats/pt/opened.h"
#include "formats/pt/tree_reader.h"
#include "formats/source/lost_metadata.h"
#include "formats/source/metadata_member.h"
#include "thalia/error.h"
#include "thalia/state/value.h"

namespace thalia::formats::pt {
namespace {

void check_tensors(const SinkInput& input) {
  for (const SinkTensor& tensor : input.tensors) {
    const TensorLayout& layout = tensor.layout;
    const auto context = [&](std::string value) {
      return ErrorContext{.tensor = printable(tensor.name), .value = std::move(value)};
    };
    if (torch_dtype_name(layout.dtype).empty()) {
      throw UnsupportedDtypeError(std::string(dtype_name(layout.dtype)),
                                  "torch has no such element type",
                                  context(std::string(dtype_name(layout.dtype))));
    }
    if (layout.encoding != Encoding::dense && !is_sparse(layout.encoding)) {
      throw UnsupportedError(ErrorCode::unsupported_feature,
                             "an encoding that PyTorch's files do not have",
                             context(std::to_string(static_cast<int>(layout.encoding))));
    }
    for (const std::uint64_t extent : layout.shape.extents()) {
      if (extent <= INT64_MAX - 1) continue;
      throw UnsupportedError(ErrorCode::unsupported_feature,
                             "an extent of more than 63 bits, which torch does not have",
                             context(layout.shape.to_string()));
    }
    if (!is_valid_utf8(tensor.name)) {
      throw UnsupportedError(ErrorCode::bad_name, "a name that is no UTF-8", context(""));
    }
  }
}

// A storage has one element type wherever it is used.
void check_storages(const Graph& graph) {
  for (const TensorRecord& tensor : graph.tensors) {
    if (tensor.form != Form::strided && tensor.form != Form::quantized) continue;
    const Storage& storage = graph.storages[tensor.storage];
    if (storage.quantum != tensor.quantum || (storage.quantum != Quantum::none && storage.untyped))
      throw TreeFault{"codes that are plain elements elsewhere"};
  }
}

// Takes the facts of a .pt file's own member; what does not fit is left out.
void take_facts(PtPlan& plan, const Value& facts) {
  const auto text_at = [&](std::string_view member) -> std::string {
    const Value* const value = facts.find(member);
    return value != nullptr && value->kind() == Value::Kind::string ? value->as_string() : "";
  };
  const auto is_number = [](const std::string& text, std::size_t most) {
    return !text.empty() && text.size() <= most &&
           text.find_first_not_of("0123456789") == std::string::npos;
  };
  const std::string folder = text_at("folder");
  if (!folder.empty() && folder.size() < 256 && folder != "." && folder != ".." &&
      folder.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos)
    plan.folder = folder;
  if (const std::string version = text_at("version"); is_number(version, 1)) plan.version = version;
  if (const std::string id = text_at("serialization_id"); is_number(id, 40) && id.size() == 40)
    plan.serialization_id = id;
  const Value* const records = facts.find("records");
  if (records == nullptr || !records->is_array()) return;
  const auto has = [&](std::string_view name) {
    return std::any_of(records->elements().begin(), records->elements().end(),
                       [&](const Value& record) {
                         return record.kind() == Value::Kind::string && record.as_string() == name;
                       });
  };
  plan.format_version = has(".format_version");
  plan.storage_alignment = has(".storage_alignment");
  plan.byte_order = has("byteorder");
  plan.with_id = has(".data/serialization_id");
}

// Tensors that the object does not name get into it, if it is a dictionary.
void add_unused(PtPlan& plan, TreeReader& reader, const SinkInput& input) {
  std::vector<std::size_t> unused;
  for (std::size_t i = 0; i < input.tensors.size(); ++i)
    if (!reader.is_used(i)) unused.push_back(i);
  if (unused.empty()) return;
  const NodeId root = plan.graph.root;
  if (plan.graph.at(root).kind != NodeKind::dict)
    throw TreeFault{"tensors that the tree does not have"};
  std::unordered_set<std::string_view> keys;
  for (std::size_t k = 0; k < plan.graph.at(root).items.size(); k += 2)
    keys.insert(plan.graph.at(plan.graph.at(root).items[k]).text);
  for (const std::size_t i : unused) {
    std::string name = input.tensors[i].name;
    while (keys.contains(name)) name += '#';
    const NodeId key = reader.add_text(std::move(name));
    keys.insert(plan.graph.at(key).text);
    const NodeId tensor = reader.whole_tensor(i);
    plan.graph.nodes[root].items.insert(plan.graph.nodes[root].items.end(), {key, tensor});
  }
}

void read_tree(PtPlan& plan, const SinkInput& input, const Value& tree, const Value* attributes) {
  TreeReader reader(plan, input);
  if (attributes != nullptr) reader.set_attributes(*attributes);
  plan.graph.root = reader.read(tree);
  add_unused(plan, reader, input);
  check_storages(plan.graph);
  if (reader.arrays() > 0)
    plan.losses.push_back("what is a numpy array or scalar, as it becomes a tensor");
  if (reader.frozen() > 0)
    plan.losses.push_back("what is a frozenset, as torch.load takes no such object");
  if (reader.plainer() > 0) {
    plan.losses.push_back(
        "what is a deque, a path, a time, a BytesIO or of a class of its own, which becomes a "
        "list, "
        "a text, bytes or what it is made of, as torch.load takes no such object");
  }
}

void read_flat(PtPlan& plan, const SinkInput& input) {
  plan.graph = {};
  plan.payloads.clear();
  TreeReader reader(plan, input);
  Node root{.kind = NodeKind::dict};
  for (std::size_t i = 0; i < input.tensors.size(); ++i) {
    root.items.push_back(reader.add_text(input.tensors[i].name));
    root.items.push_back(reader.whole_tensor(i));
  }
  plan.graph.root = reader.add(std::move(root));
}

// The tree that a file's metadata hold, and the attributes beside it; null if there are none.
struct KeptTree {
  const Value* tree = nullptr;
  const Value* attributes = nullptr;
};

KeptTree kept_tree(const Value& metadata) {
  KeptTree kept;
  if (const Value* const facts = metadata.find(kPtMember); facts != nullptr && facts->is_object())
    kept.attributes = facts->find("attributes");
  const Value* const saved = metadata.find(kTreeMember);
  if (saved == nullptr || !saved->is_object()) return kept;
  const Value* const version = saved->find("version");
  if (version != nullptr && *version == Value(kTreeVersion)) kept.tree = saved->find("tree");
  return kept;
}

}  // namespace

std::optional<PtPlan> plan_of_tree(const SinkInput& input, const Value& metadata) {
  const KeptTree kept = kept_tree(metadata);
  if (kept.tree == nullptr) return std::nullopt;
  PtPlan plan;
  try {
    read_tree(plan, input, *kept.tree, kept.attributes);
  } catch (const TreeFault&) {
    return std::nullopt;
  }
  return plan;
}

PtPlan make_plan(const SinkInput& input, const ReadLimits& limits) {
  check_tensors(input);
  PtPlan plan;
  const Value metadata = parse_json(input.metadata, limits);
  const Value* const facts = metadata.find(kPtMember);
  const bool has_facts = facts != nullptr && facts->is_object();
  if (has_facts) take_facts(plan, *facts);
  KeptTree kept = kept_tree(metadata);
  const bool has_tree = kept.tree != nullptr;  // of one that does not fit, it is told why
  if (has_tree) {
    try {
      read_tree(plan, input, *kept.tree, kept.attributes);
    } catch (const TreeFault& fault) {
      plan.losses.push_back(
          fmt::format("the object that the metadata describes, as it has {}", fault.what));
      kept.tree = nullptr;
    }
  }
  if (kept.tree == nullptr) read_flat(plan, input);
  std::vector<std::string> others;
  if (metadata.is_object()) {
    for (const Value::Member& member : metadata.members()) {
      const bool is_facts = member.name == kPtMember ||
                            (member.name == kFormatKey && member.value == Value(kPtMember));
      const bool is_tree = member.name == kTreeMember;
      if (!(has_facts && is_facts) && !(has_tree && is_tree)) others.push_back(member.name);
    }
  }
  add_lost_metadata(plan.losses, input, others);
  return plan;
}

}  // namespace thalia::formats::pt
