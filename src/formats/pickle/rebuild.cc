// What calls of torch's rebuild functions stand for: tensors. Each lies in its storage afterwards;
// whether the archive has that storage is checked by anybody who opens it.
#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "formats/pickle/builder.h"

namespace thalia::formats::pt {
namespace {

constexpr std::size_t kProperties = 2;  ///< of a tensor: conj, neg

}  // namespace

bool is_contiguous(const TensorRecord& tensor) noexcept {
  std::uint64_t expected = 1;
  for (unsigned i = tensor.shape.rank(); i-- > 0;) {
    const std::uint64_t extent = tensor.shape[i];
    if (extent == 0) return true;
    if (extent != 1 && tensor.stride[i] != expected) return false;
    expected *= extent;
  }
  return true;
}

std::optional<std::uint64_t> reach_of(const Shape& shape,
                                      std::span<const std::uint64_t> stride) noexcept {
  std::uint64_t reach = 1;
  for (unsigned i = 0; i < shape.rank(); ++i) {
    std::uint64_t step = 0;
    if (shape[i] == 0) return 0;
    if (__builtin_mul_overflow(shape[i] - 1, stride[i], &step) ||
        __builtin_add_overflow(reach, step, &reach))
      return std::nullopt;
  }
  return reach;
}

NodeId Builder::rebuild(const Symbol& symbol, const std::vector<NodeId>& arguments) {
  struct Signature {
    Meaning meaning;
    std::size_t least, most;
  };
  static constexpr std::array kSignatures{
      Signature{Meaning::rebuild_tensor, 4, 4},
      Signature{Meaning::rebuild_tensor_v2, 6, 7},
      Signature{Meaning::rebuild_tensor_v3, 7, 8},
      Signature{Meaning::rebuild_qtensor, 7, 7},
      Signature{Meaning::rebuild_sparse_tensor, 2, 2},
      Signature{Meaning::rebuild_parameter, 3, 3},
      Signature{Meaning::rebuild_parameter_with_state, 4, 4},
      Signature{Meaning::rebuild_from_type, 4, 4},
  };
  for (const Signature& signature : kSignatures) {
    if (signature.meaning != symbol.meaning) continue;
    if (arguments.size() >= signature.least && arguments.size() <= signature.most) continue;
    refuse(ErrorCode::bad_value, symbol.name, fmt::format("{} arguments", arguments.size()),
           fmt::format("{} to {}", signature.least, signature.most));
  }
  const auto is = [&](Meaning meaning) { return symbol.meaning == meaning; };
  if (is(Meaning::rebuild_tensor) || is(Meaning::rebuild_tensor_v2))
    return rebuild_strided(arguments, false);
  if (is(Meaning::rebuild_tensor_v3)) return rebuild_strided(arguments, true);
  if (is(Meaning::rebuild_qtensor)) return rebuild_quantized(arguments);
  if (is(Meaning::rebuild_sparse_tensor)) return rebuild_sparse(arguments);
  if (is(Meaning::rebuild_parameter)) return rebuild_parameter(arguments, false);
  if (is(Meaning::rebuild_parameter_with_state)) return rebuild_parameter(arguments, true);
  if (is(Meaning::rebuild_from_type)) return rebuild_typed(arguments);
  unsupported("a tensor on the device meta, which has no elements");
}

void Builder::place_in_storage(TensorRecord& tensor, NodeId storage, NodeId offset, NodeId shape,
                               NodeId stride) {
  need(storage, NodeKind::storage, "storage");
  tensor.storage = at(storage).index;
  tensor.offset = need_count(offset, "storage_offset");
  tensor.shape = need_shape(shape);
  const Arguments steps = need_items(stride, "stride", tensor.shape.rank(), tensor.shape.rank());
  for (unsigned i = 0; i < tensor.shape.rank(); ++i)
    tensor.stride[i] = need_count(steps[i], "stride");
}

void Builder::check_reach(const TensorRecord& tensor) const {
  const Storage& storage = graph_.storages[tensor.storage];
  if (!tensor.shape.byte_length(tensor.dtype)) {
    refuse(ErrorCode::out_of_bounds, "shape", tensor.shape.to_string(),
           "a shape of less than 2^64 bytes");
  }
  const std::uint64_t width = dtype_bits(tensor.dtype) / 8;
  const std::uint64_t room = storage.bytes / width;
  const std::optional<std::uint64_t> reach =
      reach_of(tensor.shape, std::span(tensor.stride).first(tensor.shape.rank()));
  if (reach && *reach == 0) return;
  if (!reach || tensor.offset > room || *reach > room - tensor.offset) {
    refuse(ErrorCode::out_of_bounds, "stride",
           fmt::format("shape {} from element {} on, {} elements", tensor.shape.to_string(),
                       tensor.offset, reach ? std::to_string(*reach) : "2^64 or more"),
           fmt::format("a storage of {} elements", room));
  }
}

NodeId Builder::add_tensor(const TensorRecord& tensor) {
  charge(sizeof tensor);
  graph_.tensors.push_back(tensor);
  return add(
      {.kind = NodeKind::tensor, .index = static_cast<std::uint32_t>(graph_.tensors.size() - 1)});
}

NodeId Builder::rebuild_strided(const std::vector<NodeId>& arguments, bool typed) {
  TensorRecord tensor;
  place_in_storage(tensor, arguments[0], arguments[1], arguments[2], arguments[3]);
  const Storage& storage = graph_.storages[tensor.storage];
  tensor.dtype = storage.dtype;
  if (storage.quantum != Quantum::none)
    refuse(ErrorCode::inconsistent, "storage", "quantized", "",
           "a plain tensor of quantized codes");
  if (arguments.size() > 4) {
    tensor.requires_grad = need_flag(arguments[4], "requires_grad");
    std::size_t metadata = 6;
    if (typed) {
      need(arguments[6], NodeKind::dtype, "dtype");
      const Symbol dtype = at(arguments[6]).symbol;
      if (dtype.quantum != Quantum::none) unsupported("quantized elements without their scale");
      tensor.dtype = dtype.dtype;
      ++metadata;
    }
    if (arguments.size() > metadata && at(arguments[metadata]).kind != NodeKind::none) {
      need(arguments[metadata], NodeKind::dict, "metadata");
      const std::vector<NodeId>& members = at(arguments[metadata]).items;
      // Any number of tensors may have the same dictionary.
      if (members.size() > 2 * kProperties) {
        refuse(ErrorCode::bad_value, "metadata", fmt::format("{} members", members.size() / 2),
               fmt::format("at most {}", kProperties));
      }
      for (std::size_t i = 0; i < members.size(); i += 2) {
        const std::string_view key = need_text(members[i], "metadata");
        const bool flag = need_flag(members[i + 1], "metadata");
        if (key == "conj") {
          tensor.conjugate = flag;
        } else if (key == "neg") {
          tensor.negative = flag;
        } else {
          unsupported("a tensor with the property '" + printable(key) + "'");
        }
      }
    }
  }
  check_reach(tensor);
  return add_tensor(tensor);
}

const TensorRecord& Builder::need_part(NodeId id, std::string_view field, unsigned rank) const {
  need(id, NodeKind::tensor, field);
  const TensorRecord& part = graph_.tensors[at(id).index];
  if (part.form != Form::strided || part.shape.rank() != rank) {
    refuse(ErrorCode::bad_value, field, part.shape.to_string(),
           fmt::format("a plain tensor of {} dimensions", rank));
  }
  return part;
}

NodeId Builder::rebuild_quantized(const std::vector<NodeId>& arguments) {
  TensorRecord tensor{.form = Form::quantized};
  place_in_storage(tensor, arguments[0], arguments[1], arguments[2], arguments[3]);
  const Storage& storage = graph_.storages[tensor.storage];
  if (storage.quantum == Quantum::none)
    refuse(ErrorCode::inconsistent, "storage", "plain", "a storage of quantized codes");
  tensor.dtype = storage.dtype;
  tensor.quantum = storage.quantum;
  tensor.requires_grad = need_flag(arguments[5], "requires_grad");
  const Arguments scheme = need_items(arguments[4], "quantizer_params", 3, 4);
  const Symbol kind = need_symbol(scheme[0], "quantizer_params");
  TorchQuantizer& quantizer = tensor.quantizer;
  if (kind.meaning == Meaning::scheme_per_tensor && scheme.size() == 3) {
    quantizer.scale = need_number(scheme[1], "scale");
    need(scheme[2], NodeKind::integer, "zero_point");
    quantizer.zero_point = at(scheme[2]).integer;
  } else if (kind.meaning == Meaning::scheme_per_channel && scheme.size() == 4) {
    quantizer.per_channel = true;
    quantizer.scales = scheme[1];
    quantizer.zero_points = scheme[2];
    const std::uint64_t axis = need_count(scheme[3], "axis");
    const TensorRecord& scales = need_part(scheme[1], "scales", 1);
    const TensorRecord& zeros = need_part(scheme[2], "zero_points", 1);
    if (scales.dtype != DType::f64 && scales.dtype != DType::f32)
      unsupported("scales of another type than float32 and float64");
    if (zeros.dtype != DType::i64 && zeros.dtype != DType::i32)
      unsupported("zero points of another type than int32 and int64");
    if (axis >= tensor.shape.rank())
      refuse(ErrorCode::out_of_bounds, "axis", std::to_string(axis), "less than the rank");
    quantizer.axis = static_cast<unsigned>(axis);
    const std::uint64_t channels = tensor.shape[quantizer.axis];
    if (scales.shape[0] != channels || zeros.shape[0] != channels) {
      refuse(ErrorCode::inconsistent, "scales", scales.shape.to_string(), std::to_string(channels));
    }
  } else {
    unsupported(fmt::format("the quantization scheme '{}'", printable(kind.name)));
  }
  check_reach(tensor);
  return add_tensor(tensor);
}

NodeId Builder::rebuild_sparse(const std::vector<NodeId>& arguments) {
  need(arguments[0], NodeKind::layout, "layout");
  const std::string_view layout = at(arguments[0]).text;
  TensorRecord tensor;
  if (layout == "torch.sparse_coo") {
    sparse_coo(tensor, need_items(arguments[1], "data", 3, 4));
  } else if (layout == "torch.sparse_csr") {
    sparse_csr(tensor, need_items(arguments[1], "data", 4, 4));
  } else {
    unsupported(fmt::format("a tensor of the layout '{}'; save it as to_sparse_coo() or to_dense()",
                            printable(layout)));
  }
  if (!tensor.shape.byte_length(tensor.dtype)) {
    refuse(ErrorCode::out_of_bounds, "shape", tensor.shape.to_string(),
           "a shape of less than 2^64 bytes");
  }
  return add_tensor(tensor);
}

void Builder::sparse_coo(TensorRecord& tensor, Arguments data) {
  tensor.form = Form::sparse_coo;
  tensor.indices = data[0];
  tensor.values = data[1];
  tensor.shape = need_shape(data[2]);
  tensor.coalesced = data.size() > 3 && need_flag(data[3], "is_coalesced");
  const TensorRecord& indices = need_part(data[0], "indices", 2);
  need(data[1], NodeKind::tensor, "values");
  const TensorRecord& values = graph_.tensors[at(data[1]).index];
  if (values.form != Form::strided || values.shape.rank() != 1)
    unsupported("a sparse tensor with dense dimensions; save it as to_dense()");
  if (indices.dtype != DType::i64)
    refuse(ErrorCode::bad_value, "indices", std::string(torch_dtype_name(indices.dtype)), "int64");
  if (tensor.shape.rank() == 0) unsupported("a sparse tensor without dimensions");
  tensor.nnz = values.shape[0];
  if (indices.shape[0] != tensor.shape.rank() || indices.shape[1] != tensor.nnz) {
    refuse(ErrorCode::inconsistent, "indices", indices.shape.to_string(),
           fmt::format("[{}, {}]", tensor.shape.rank(), tensor.nnz));
  }
  tensor.dtype = values.dtype;
}

void Builder::sparse_csr(TensorRecord& tensor, Arguments data) {
  tensor.form = Form::sparse_csr;
  tensor.indices = data[0];
  tensor.columns = data[1];
  tensor.values = data[2];
  tensor.shape = need_shape(data[3]);
  if (tensor.shape.rank() != 2) unsupported("a batch of compressed sparse matrices");
  const TensorRecord& rows = need_part(data[0], "crow_indices", 1);
  const TensorRecord& columns = need_part(data[1], "col_indices", 1);
  need(data[2], NodeKind::tensor, "values");
  const TensorRecord& values = graph_.tensors[at(data[2]).index];
  if (values.form != Form::strided || values.shape.rank() != 1)
    unsupported("a sparse matrix of dense blocks; save it as to_dense()");
  if ((rows.dtype != DType::i64 && rows.dtype != DType::i32) || columns.dtype != rows.dtype)
    refuse(ErrorCode::bad_value, "crow_indices", std::string(torch_dtype_name(rows.dtype)),
           "int32 or int64, as col_indices");
  tensor.nnz = values.shape[0];
  if (rows.shape[0] == 0 || rows.shape[0] - 1 != tensor.shape[0] ||
      columns.shape[0] != tensor.nnz) {
    refuse(ErrorCode::inconsistent, "crow_indices",
           fmt::format("{} and {}", rows.shape.to_string(), columns.shape.to_string()),
           fmt::format("[{} + 1] and [{}]", tensor.shape[0], tensor.nnz));
  }
  tensor.dtype = values.dtype;
}

NodeId Builder::rebuild_parameter(const std::vector<NodeId>& arguments, bool with_state) {
  need(arguments[0], NodeKind::tensor, "data");
  const Node& data = at(arguments[0]);
  TensorRecord tensor = graph_.tensors[data.index];
  tensor.requires_grad = need_flag(arguments[1], "requires_grad");
  if (with_state && at(arguments[3]).kind != NodeKind::none) {
    const bool empty = at(arguments[3]).items.empty() && at(arguments[3]).text.empty();
    if (!empty) ++graph_.tensors_with_attributes;
  }
  const NodeId made = add_tensor(tensor);
  graph_.nodes[made].flag = true;
  return made;
}

NodeId Builder::rebuild_typed(const std::vector<NodeId>& arguments) {
  const Symbol function = need_symbol(arguments[0], "_rebuild_from_type_v2");
  const Symbol type = need_symbol(arguments[1], "_rebuild_from_type_v2");
  if (type.meaning != Meaning::plain_tensor_class && type.meaning != Meaning::parameter_class)
    unsupported(fmt::format("a tensor of the class '{}'", printable(type.name)));
  if (function.meaning == Meaning::rebuild_from_type)
    refuse(ErrorCode::bad_value, "_rebuild_from_type_v2", "itself", "another function");
  const NodeId made = call(arguments[0], arguments[2]);
  need(made, NodeKind::tensor, "_rebuild_from_type_v2");
  const Node& state = at(arguments[3]);
  if (!state.items.empty()) ++graph_.tensors_with_attributes;
  if (type.meaning == Meaning::parameter_class) graph_.nodes[made].flag = true;
  return made;
}

}  // namespace thalia::formats::pt
