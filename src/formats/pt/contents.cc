// The pickle is read once, when the file is opened, with its checksum compared. Elements are read
// when they are asked for: viewed in their record where they lie row by row, else gathered into
// memory that is counted first. The sentences about losses are made once, too.
#include "formats/pt/contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "formats/pickle/machine.h"
#include "formats/pt/gather.h"
#include "formats/source/list_names.h"
#include "formats/source/swap_bytes.h"
#include "state/tensor/counted_tensor.h"

namespace thalia::formats::pt {
namespace {

// Records that hold nothing that a sink would not write anew.
bool is_expected(std::string_view record) noexcept {
  return record.starts_with("data/") || record == "data.pkl" || record == "version" ||
         record == "byteorder" || record == ".format_version" || record == ".storage_alignment" ||
         record == ".data/serialization_id" || record.ends_with('/');
}

// Records of code, and of constants, which are listed as tensors.
bool is_of_script(std::string_view record) noexcept {
  return record.starts_with("code/") || record == "constants.pkl" ||
         record.starts_with("constants/") || record.starts_with(".data/");
}

// Lists and dictionaries that are in several places, where a change of one is a change of all.
std::uint64_t repeated_containers(const Graph& graph) {
  std::vector<bool> seen(graph.nodes.size());
  std::uint64_t repeated = 0;
  for (const Node& node : graph.nodes) {
    for (const NodeId item : node.items) {
      const NodeKind kind = graph.at(item).kind;
      if (kind != NodeKind::list && kind != NodeKind::dict && kind != NodeKind::counter &&
          kind != NodeKind::set)
        continue;
      repeated += seen[item] ? 1 : 0;
      seen[item] = true;
    }
  }
  return repeated;
}

}  // namespace

std::shared_ptr<const Contents> Contents::read(StoredBytes file, const ReadOptions& options,
                                               io::MemoryBudget& budget) {
  return std::make_shared<const Contents>(std::move(file), options, budget);
}

Contents::Contents(StoredBytes file, const ReadOptions& options, io::MemoryBudget& budget)
    : limits_(options.input.limits), archive_(std::move(file), options) {
  read_part(state_, "data.pkl", "data/", budget);
  if (archive_.is_script()) {
    read_part(constants_, "constants.pkl", "constants/", budget);
    std::vector<Occurrence>& constants = constants_.tree.occurrences;
    for (Occurrence& constant : constants) constant.name = "CONSTANTS.c" + constant.name;
    for (const Occurrence& tensor : state_.tree.occurrences) {
      if (tensor.name.starts_with("CONSTANTS.c")) {
        throw FormatError(ErrorCode::bad_name, "a module with the name of the constants",
                          {.section = "data.pkl"});
      }
    }
  }
  find_losses();
}

void Contents::read_part(Part& part, std::string_view record, std::string_view prefix,
                         io::MemoryBudget& budget) {
  const ZipMember& member = *archive_.find(record);
  part.pickle = archive_.checked(member, budget);
  PickleName name{.record = std::string(record)};
  if (member.method == ZipMethod::stored) name.offset = member.offset;
  part.graph = read_pickle(part.pickle.bytes, std::move(name), budget);
  part.members = place_storages(archive_, part.graph, prefix);
  part.tree = make_tree(part.graph, limits_, budget);
  keep_shared_records(part, budget);
}

// Else a small compressed record would be inflated as often as there are tensors in it.
void Contents::keep_shared_records(const Part& part, io::MemoryBudget& budget) {
  std::unordered_set<const ZipMember*> used;
  for (const Occurrence& occurrence : part.tree.occurrences) {
    for (const ZipMember* const member : members_of(part, occurrence.node))
      if (!used.insert(member).second) archive_.keep(*member, budget);
  }
}

std::vector<const ZipMember*> Contents::members_of(const Part& part, NodeId id) const {
  std::vector<const ZipMember*> members;
  const Node& node = part.graph.at(id);
  if (node.kind != NodeKind::tensor) return members;
  const auto add = [&](NodeId inner) {
    if (inner == kNoNode) return;
    members.push_back(part.members[part.graph.tensors[part.graph.at(inner).index].storage]);
  };
  const TensorRecord& tensor = part.graph.tensors[node.index];
  if (tensor.form == Form::sparse_coo || tensor.form == Form::sparse_csr) {
    for (const NodeId inner : {tensor.indices, tensor.columns, tensor.values}) add(inner);
  } else {
    for (const NodeId inner : {id, tensor.quantizer.scales, tensor.quantizer.zero_points})
      add(inner);
  }
  return members;
}

void Contents::find_losses() {
  std::vector<std::string> others;
  std::size_t code = 0;
  for (const ZipMember& member : archive_.zip().members()) {
    const std::string_view record = archive_.record_name(member);
    if (is_expected(record)) continue;
    if (archive_.is_script() && is_of_script(record)) {
      code += record.starts_with("code/") && record.ends_with(".py") ? 1 : 0;
    } else {
      others.emplace_back(record);
    }
  }
  const auto lose = [this](std::uint64_t count, std::string_view one, std::string_view many) {
    if (count == 1) losses_.push_back(fmt::format("1 {}", one));
    if (count > 1) losses_.push_back(fmt::format("{} {}", count, many));
  };
  if (archive_.is_script())
    losses_.push_back(fmt::format("the code of the TorchScript program, {} files", code));
  if (!others.empty()) losses_.push_back("the records " + list_names(others));
  const PtTree& tree = state_.tree;
  lose(state_.graph.tensors_with_attributes, "tensor's Python attributes",
       "tensors' Python attributes");
  lose(tree.attributes_lost, "dictionary's Python attributes", "dictionaries' Python attributes");
  lose(state_.graph.plainer, "defaultdict or bytearray, which becomes dict or bytes",
       "of defaultdict and bytearray, which become dict and bytes");
  if (!archive_.is_script())
    lose(repeated_containers(state_.graph), "object that occurs again, as a copy",
         "objects that occur again, as copies");
  lose(tree.layouts, "torch.layout, which becomes a text", "torch.layouts, which become texts");
  lose(tree.bare_storages, "storage, which becomes a tensor", "storages, which become tensors");
  std::uint64_t computed = 0;
  for (const Occurrence& occurrence : tree.occurrences) {
    const Node& node = state_.graph.at(occurrence.node);
    if (node.kind != NodeKind::tensor) continue;
    const TensorRecord& tensor = state_.graph.tensors[node.index];
    computed += tensor.conjugate || tensor.negative ? 1 : 0;
  }
  lose(computed, "conjugated or negated view, whose elements are computed",
       "conjugated or negated views, whose elements are computed");
}

Tensor Contents::read(const Part& part, NodeId id, bool dequantize) const {
  std::uint64_t stored = part.graph.at(id).kind == NodeKind::array ? part.pickle.bytes.size() : 0;
  for (const ZipMember* const member : members_of(part, id)) stored += member->stored_bytes;
  io::MemoryBudget budget(limits_, stored);
  return read(part, id, dequantize, budget);
}

Tensor Contents::read(const Part& part, NodeId id, bool dequantize,
                      io::MemoryBudget& budget) const {
  const Node& node = part.graph.at(id);
  if (node.kind == NodeKind::array) return read_array(part.graph.arrays[node.index], budget);
  const TensorRecord& tensor = part.graph.tensors[node.index];
  if (tensor.form == Form::sparse_coo || tensor.form == Form::sparse_csr)
    return read_sparse(part, tensor, budget);
  return read_strided(part, tensor, dequantize, budget);
}

Tensor Contents::read(const Part& part, const Span& span) const {
  const ZipMember& member = *part.members[span.storage];
  io::MemoryBudget budget(limits_, member.stored_bytes);
  const StoredBytes stored = archive_.bytes_of(member, budget);
  const ByteSpan bytes = stored.bytes.subspan(span.begin, span.length);
  const TensorLayout layout{.dtype = span.dtype,
                            .shape = Shape({span.length / (dtype_bits(span.dtype) / 8)})};
  const bool of_bytes = part.graph.storages[span.storage].dtype == DType::u8 &&
                        !part.graph.storages[span.storage].untyped;
  if (archive_.big_endian() && span.dtype == DType::u8 && !of_bytes) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "tensors of several types in the same memory of a big-endian file", {});
  }
  if (!swaps(span.dtype)) return Tensor::adopt(layout, bytes, stored.owner);
  return state::counted_tensor(budget, "data", layout, [&](MutableByteSpan out) {
    std::memcpy(out.data(), bytes.data(), bytes.size());
    swap_bytes(span.dtype, out);
  });
}

Tensor Contents::read_array(const ArrayRecord& array, io::MemoryBudget& budget) const {
  const TensorLayout layout{.dtype = array.dtype, .shape = array.shape};
  const ByteSpan bytes = as_byte_span(array.bytes);
  if (!array.by_columns && !array.big_endian)
    return Tensor::adopt(layout, bytes, shared_from_this());
  return state::counted_tensor(budget, "data.pkl", layout, [&](MutableByteSpan out) {
    std::array<std::uint64_t, Shape::kMaxRank> stride{};
    std::uint64_t step = 1;
    const unsigned rank = array.shape.rank();
    for (unsigned i = 0; i < rank; ++i) {
      const unsigned dimension = array.by_columns ? i : rank - 1 - i;
      stride[dimension] = step;
      step *= array.shape[dimension];
    }
    gather(bytes, array.dtype, array.shape, stride, 0, out);
    if (array.big_endian) swap_bytes(array.dtype, out);
  });
}

Tensor Contents::read_strided(const Part& part, const TensorRecord& tensor, bool dequantize,
                              io::MemoryBudget& budget) const {
  const StoredBytes stored = archive_.bytes_of(*part.members[tensor.storage], budget);
  const std::uint64_t bytes = *tensor.shape.byte_length(tensor.dtype);
  const TensorLayout layout{.dtype = tensor.dtype, .shape = tensor.shape};
  const bool numbers_of_codes = tensor.form == Form::quantized && dequantize;
  const bool computed = tensor.conjugate || tensor.negative || swaps(tensor.dtype);
  if (is_contiguous(tensor) && !computed && !numbers_of_codes) {
    const std::uint64_t begin = bytes == 0 ? 0 : tensor.offset * (dtype_bits(tensor.dtype) / 8);
    return Tensor::adopt(layout, stored.bytes.subspan(begin, bytes), stored.owner);
  }
  Tensor elements = state::counted_tensor(budget, "data", layout, [&](MutableByteSpan out) {
    gather(stored.bytes, tensor.dtype, tensor.shape, tensor.stride, tensor.offset, out);
    if (swaps(tensor.dtype)) swap_bytes(tensor.dtype, out);
    if (tensor.conjugate && dtype_is_complex(tensor.dtype)) negate(tensor.dtype, true, out);
    if (tensor.negative) negate(tensor.dtype, false, out);
  });
  return numbers_of_codes ? dequantized(part, tensor, elements, budget) : elements;
}

void Contents::check(const Part& part, NodeId id) const {
  const Node& node = part.graph.at(id);
  if (node.kind != NodeKind::tensor) return;  // the pickle's checksum was compared
  for (const ZipMember* const member : members_of(part, id)) archive_.check_crc(*member);
  // Any bytes are elements, wherever the strides find them; but not any are indices.
  const Form form = part.graph.tensors[node.index].form;
  if (form == Form::sparse_coo || form == Form::sparse_csr)
    static_cast<void>(read(part, id, false));
}

void Contents::check(const Part& part, const Span& span) const {
  archive_.check_crc(*part.members[span.storage]);
}

const ZipMember* Contents::raw_member(const Part& part, NodeId id, bool dequantize) const {
  const Node& node = part.graph.at(id);
  if (node.kind != NodeKind::tensor) return nullptr;
  const TensorRecord& tensor = part.graph.tensors[node.index];
  const bool plain =
      tensor.form == Form::strided || (tensor.form == Form::quantized && !dequantize);
  if (!plain || !is_contiguous(tensor) || tensor.conjugate || tensor.negative ||
      swaps(tensor.dtype))
    return nullptr;
  const ZipMember* const member = part.members[tensor.storage];
  return member->method == ZipMethod::stored ? member : nullptr;
}

}  // namespace thalia::formats::pt
