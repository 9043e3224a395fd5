// The tensors of a tree that is read: which payloads they lie in.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "formats/pt/tree_reader.h"
#include "thalia/error.h"

namespace thalia::formats::pt {
namespace {

[[noreturn]] void fail_tensor_node(std::string what) {
  throw TreeFault{std::move(what)};
}

std::uint64_t count_at(const Value& object, std::string_view member) {
  const Value* const value = object.find(member);
  if (value == nullptr || value->kind() != Value::Kind::number)
    fail_tensor_node("a view without numbers");
  const std::string& text = value->number_text();
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count > INT64_MAX)
    fail_tensor_node("a count is expected");
  return count;
}

std::vector<std::uint64_t> counts_at(const Value& object, std::string_view member) {
  const Value* const list = object.find(member);
  if (list == nullptr || !list->is_array() || list->size() > Shape::kMaxRank)
    fail_tensor_node("a view without a shape");
  std::vector<std::uint64_t> counts;
  for (const Value& element : list->elements()) {
    Value wrapped = Value::object();
    wrapped.add("n", element);
    counts.push_back(count_at(wrapped, "n"));
  }
  return counts;
}

// torch refuses to make others require one.
bool has_gradients(DType dtype) {
  const std::string_view name = torch_dtype_name(dtype);
  return name.starts_with("float") || name.starts_with("bfloat") || name.starts_with("complex");
}

bool is_true(const Value* value) {
  return value != nullptr && value->kind() == Value::Kind::boolean && value->as_bool();
}

}  // namespace

std::size_t TreeReader::find(const Value& name) const {
  if (name.kind() != Value::Kind::string) fail_tensor_node("a tensor's name is expected");
  const auto found = places_.find(name.as_string());
  if (found == places_.end()) fail_tensor_node("a tensor that the file does not have");
  return found->second;
}

std::uint32_t TreeReader::add_storage(std::size_t i, PayloadPart part, DType dtype,
                                      std::uint64_t count) {
  plan_.graph.storages.push_back(
      {.dtype = dtype, .count = count, .bytes = count * (dtype_bits(dtype) / 8)});
  plan_.payloads.push_back({.tensor = i, .part = part});
  return static_cast<std::uint32_t>(plan_.graph.storages.size() - 1);
}

std::uint32_t TreeReader::storage_of(std::size_t i) {
  if (storages_[i] == kUnused) {
    const TensorLayout& layout = input_.tensors[i].layout;
    storages_[i] = add_storage(i, PayloadPart::whole, layout.dtype, *layout.shape.element_count());
  }
  return storages_[i];
}

NodeId TreeReader::add_plain(std::uint32_t storage, DType dtype, const Shape& shape) {
  TensorRecord record{.dtype = dtype, .shape = shape, .storage = storage};
  set_row_strides(record);
  plan_.graph.tensors.push_back(record);
  return add({.kind = NodeKind::tensor,
              .index = static_cast<std::uint32_t>(plan_.graph.tensors.size() - 1)});
}

NodeId TreeReader::add_sparse(std::size_t i, bool coalesced) {
  const TensorLayout& layout = input_.tensors[i].layout;
  const bool coo = layout.encoding == Encoding::coo;
  TensorRecord record{.form = coo ? Form::sparse_coo : Form::sparse_csr,
                      .dtype = layout.dtype,
                      .shape = layout.shape,
                      .coalesced = coalesced,
                      .nnz = layout.nnz};
  const std::uint64_t rank = layout.shape.rank();
  const Shape indices = coo ? Shape({rank, layout.nnz}) : Shape({layout.shape[0] + 1});
  // Whose storages follow each other: the payload is written through all of them.
  std::uint32_t storage = storages_[i];
  if (storage == kUnused) {
    storage = storages_[i] =
        add_storage(i, PayloadPart::indices, DType::i64, *indices.element_count());
    if (!coo) add_storage(i, PayloadPart::columns, DType::i64, layout.nnz);
    add_storage(i, PayloadPart::values, layout.dtype, layout.nnz);
  }
  record.indices = add_plain(storage++, DType::i64, indices);
  if (!coo) record.columns = add_plain(storage++, DType::i64, Shape({layout.nnz}));
  record.values = add_plain(storage, layout.dtype, Shape({layout.nnz}));
  plan_.graph.tensors.push_back(record);
  return add({.kind = NodeKind::tensor,
              .index = static_cast<std::uint32_t>(plan_.graph.tensors.size() - 1)});
}

NodeId TreeReader::whole_tensor(std::size_t i) {
  const TensorLayout& layout = input_.tensors[i].layout;
  if (is_sparse(layout.encoding)) return add_sparse(i, layout.encoding == Encoding::coo);
  return add_plain(storage_of(i), layout.dtype, layout.shape);
}

NodeId TreeReader::tensor(const Value& value) {
  const std::size_t i = find(*value.find("tensor"));
  const TensorLayout& layout = input_.tensors[i].layout;
  NodeId made = kNoNode;
  if (is_sparse(layout.encoding)) {
    const Value* const coalesced = value.find("coalesced");
    made = add_sparse(
        i, layout.encoding == Encoding::coo && (coalesced == nullptr || is_true(coalesced)));
  } else {
    made = whole_tensor(i);
    TensorRecord record = plan_.graph.tensors[plan_.graph.at(made).index];
    if (const Value* const view = value.find("view")) set_view(record, *view, layout);
    if (const Value* const quantized = value.find("quantized"))
      if (value.find("view") == nullptr) set_quantizer(record, *quantized);
    plan_.graph.tensors[plan_.graph.at(made).index] = record;
  }
  Node& node = plan_.graph.nodes[made];
  TensorRecord& record = plan_.graph.tensors[node.index];
  const Value* const parameter = value.find("parameter");
  node.flag = parameter != nullptr && record.form == Form::strided;
  record.requires_grad = is_true(parameter != nullptr ? parameter : value.find("requires_grad")) &&
                         has_gradients(record.dtype) && record.form != Form::quantized;
  return made;
}

void TreeReader::set_view(TensorRecord& record, const Value& view, const TensorLayout& layout) {
  if (!view.is_object() || view.find("dtype") == nullptr ||
      view.find("dtype")->kind() != Value::Kind::string)
    fail_tensor_node("a view without a dtype");
  const auto dtype = torch_dtype_from_name(view.find("dtype")->as_string());
  if (!dtype) fail_tensor_node("a view of a dtype that is not known");
  const std::vector<std::uint64_t> shape = counts_at(view, "shape");
  const std::vector<std::uint64_t> stride = counts_at(view, "stride");
  record.dtype = *dtype;
  record.offset = count_at(view, "offset");
  if (shape.size() != stride.size()) fail_tensor_node("a view with a stride too many or too few");
  record.shape = Shape(std::span<const std::uint64_t>(shape));
  std::copy(stride.begin(), stride.end(), record.stride.begin());
  const std::uint64_t room = *layout.shape.byte_length(layout.dtype) / (dtype_bits(*dtype) / 8);
  const auto reach = reach_of(record.shape, stride);
  if (!record.shape.byte_length(*dtype) || !reach ||
      (*reach > 0 && (record.offset > room || *reach > room - record.offset)))
    fail_tensor_node("a view that leaves its tensor");
  // torch gives a typed storage one dtype: with another one it says so at each tensor.
  if (*dtype != layout.dtype) plan_.graph.storages[record.storage].untyped = true;
}

void TreeReader::set_quantizer(TensorRecord& record, const Value& quantized) {
  if (!quantized.is_object()) return;
  const auto text_at = [&](std::string_view member) -> const std::string* {
    const Value* const value = quantized.find(member);
    return value != nullptr && value->kind() == Value::Kind::string ? &value->as_string() : nullptr;
  };
  const std::string* const name = text_at("dtype");
  const auto quantum = name != nullptr ? quantum_from_name(*name) : std::nullopt;
  if (!quantum || quantum_dtype(*quantum) != record.dtype) return;
  TorchQuantizer quantizer;
  if (const Value* const scales = quantized.find("scales")) {
    const Value* const zeros = quantized.find("zero_points");
    if (zeros == nullptr || scales->find("tensor") == nullptr || zeros->find("tensor") == nullptr)
      fail_tensor_node("quantized channels without their scales");
    const std::uint64_t axis = count_at(quantized, "axis");
    if (axis >= record.shape.rank()) fail_tensor_node("an axis that the tensor does not have");
    quantizer.per_channel = true;
    quantizer.axis = static_cast<unsigned>(axis);
    quantizer.scales = tensor(*scales);
    quantizer.zero_points = tensor(*zeros);
    const auto fits = [&](NodeId id, std::initializer_list<DType> dtypes) {
      const TensorRecord& part = plan_.graph.tensors[plan_.graph.at(id).index];
      return part.form == Form::strided && part.shape == Shape({record.shape[quantizer.axis]}) &&
             std::find(dtypes.begin(), dtypes.end(), part.dtype) != dtypes.end();
    };
    if (!fits(quantizer.scales, {DType::f32, DType::f64}) ||
        !fits(quantizer.zero_points, {DType::i32, DType::i64}))
      fail_tensor_node("scales that do not fit their channels");
  } else {
    const std::string* const scale = text_at("scale");
    const Value* const zero = quantized.find("zero_point");
    if (scale == nullptr || zero == nullptr || zero->kind() != Value::Kind::number)
      fail_tensor_node("quantized elements without their scale");
    quantizer.scale = plan_.graph.at(real(*scale)).real;
    const Node& point = plan_.graph.at(integer(zero->number_text()));
    if (point.kind != NodeKind::integer) fail_tensor_node("a zero point beyond 64 bits");
    quantizer.zero_point = point.integer;
  }
  record.form = Form::quantized;
  record.quantum = *quantum;
  record.quantizer = quantizer;
  plan_.graph.storages[record.storage].quantum = *quantum;
}

}  // namespace thalia::formats::pt
