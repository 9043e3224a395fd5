// One tensor on its way to a file and back. On the way there element type and encoding may change,
// and what they were is noted; on the way back the note is followed where the caller wants the
// state and not the file. Conversions on the way back can take far more memory than the file has
// bytes, so that each is charged to the context first.

#include "state/brain/stored_tensor.h"

#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "codec/float/conversion.h"
#include "format/payload.h"
#include "io/memory/allocation_limit.h"
#include "state/tensor/conversion.h"
#include "state/value/tree_json.h"
#include "thalia/types.h"

namespace thalia::state {
namespace {

Tensor encoded(const Tensor& tensor, SparseStorage sparse) {
  const unsigned rank = tensor.shape().rank();
  const bool can_be_sparse = !dtype_is_packed(tensor.dtype());
  switch (sparse) {
    case SparseStorage::automatic:
      return tensor.to_sparse_where_smaller();
    case SparseStorage::as_is:
      break;
    case SparseStorage::dense:
      return tensor.to_dense();
    case SparseStorage::csr:
      if (rank == 2 && can_be_sparse) return tensor.to_csr();
      break;
    case SparseStorage::coo:
      if (rank != 0 && can_be_sparse) return tensor.to_coo();
      break;
  }
  return tensor;
}

// Bytes that Tensor::from() allocates for it; an uncompressed tensor stays in the mapping.
std::uint64_t bytes_of(const TensorView& view) {
  const std::uint64_t decoded = view.is_raw() ? 0 : view.logical_bytes();
  return view.encoding() == Encoding::quantized ? decoded + view.dense_bytes() : decoded;
}

// The tensor as csr or coo, as `name` says. If none of its elements is 0 it takes several times the
// memory of the dense one, and that most is charged.
Tensor sparse_again(const Tensor& tensor, const std::string& name, const LoadContext& context) {
  const Shape& shape = tensor.shape();
  const bool is_csr = name == encoding_name(Encoding::csr);
  const bool is_known = is_csr || name == encoding_name(Encoding::coo);
  if (!is_known || dtype_is_packed(tensor.dtype()) || shape.rank() == 0 ||
      (is_csr && shape.rank() != 2)) {
    throw FormatError(ErrorCode::bad_value, {},
                      {.section = "region.metadata",
                       .field = "_encoding",
                       .value = printable(name, 40),
                       .bound = "csr of a matrix, or coo, of elements of whole bytes"});
  }
  const auto most = format::payload_length({.dtype = tensor.dtype(),
                                            .shape = shape,
                                            .encoding = is_csr ? Encoding::csr : Encoding::coo,
                                            .nnz = tensor.element_count(),
                                            .wide_indices = true});
  context.budget->take("payload", most.value_or(~std::uint64_t{0}));
  return is_csr ? tensor.to_csr() : tensor.to_coo();
}

// The type that it is to have, where the file tells that.
std::optional<DType> reported_dtype(DType stored, const Value& reported) {
  if (reported.find("_dtype") == nullptr) return std::nullopt;
  const std::string& name = require_text(reported, "_dtype");
  const auto dtype = dtype_from_name(name);
  if (dtype && codec::is_convertible(*dtype) && codec::is_convertible(stored)) return dtype;
  throw FormatError(ErrorCode::bad_value, {},
                    {.section = "region.metadata",
                     .field = "_dtype",
                     .value = printable(name, 40),
                     .bound = "f32, f64, f16 or bf16, of a tensor of these types"});
}

bool is_true(const Value* value) {
  return value != nullptr && value->kind() == Value::Kind::boolean && value->as_bool();
}

}  // namespace

StoredTensor store_tensor(const Tensor& tensor, std::string name, Role role,
                          const std::string& path, const StoreOptions& options) {
  StoredTensor stored{.tensor = tensor};
  // The type first, then the encoding: rounding may make zeros.
  if (options.choose_dtype && codec::is_convertible(tensor.dtype())) {
    stored.was_dtype = tensor.dtype();
    const Role reported = likely_role(role, name, tensor.shape().rank());
    stored.tensor = convert_tensor(tensor, options.choose_dtype(path, reported, tensor),
                                   options.threads, &stored.loss);
  }
  stored.tensor = encoded(stored.tensor, options.sparse);
  if (stored.tensor.encoding() != tensor.encoding()) stored.was_encoding = tensor.encoding();
  stored.spec = TensorSpec::of(std::move(name), stored.tensor.layout(), role);
  return stored;
}

bool was_converted(const StoredTensor& tensor) noexcept {
  return tensor.was_encoding || tensor.was_dtype;
}

void write_converted(JsonWriter& json, const StoredTensor& tensor) {
  if (tensor.was_encoding == Encoding::dense)
    json.member("_dense", true);
  else if (tensor.was_encoding)
    json.member("_encoding", encoding_name(*tensor.was_encoding));
  if (tensor.was_dtype) json.member("_dtype", dtype_name(*tensor.was_dtype));
}

Tensor load_tensor(const TensorView& view, const Value& reported, const LoadContext& context) {
  stop_if_cancelled(context.options.work.cancel);
  const StateLoadOptions& options = context.options;
  if (!context.read_tensors) {
    reported_dtype(view.dtype(), reported);
    if (reported.find("_encoding") != nullptr) require_text(reported, "_encoding");
    return {};
  }
  if (!context.fetch) context.budget->take("payload", bytes_of(view));
  Tensor tensor = context.fetch ? context.fetch(view, context.budget)
                                : Tensor::from(view, options.input.limits);
  if (!options.restore) return tensor;
  if (!tensor.is_dense() && is_true(reported.find("_dense"))) {
    // A sparse tensor of few bytes may claim any shape.
    context.budget->take("payload", view.dense_bytes());
    tensor = tensor.to_dense();
  } else if (reported.find("_encoding") != nullptr) {
    const std::string& name = require_text(reported, "_encoding");
    if (name != encoding_name(tensor.encoding())) {
      context.budget->take("payload", view.dense_bytes());
      tensor = sparse_again(tensor, name, context);
    }
  }
  if (const auto dtype = reported_dtype(tensor.dtype(), reported))
    return convert_tensor(tensor, *dtype, options.work.threads);
  // No type was chosen for it when the state was saved. If a later conversion narrowed it, the
  // policy in the metadata is the only trace of that.
  const bool is_half = tensor.dtype() == DType::f16 || tensor.dtype() == DType::bf16;
  return is_half && context.policy_was_applied
             ? convert_tensor(tensor, DType::f32, options.work.threads)
             : tensor;
}

bool has_narrowing_policy(const Value& metadata) noexcept {
  const Value* policy = metadata.find("precision_policy");
  return policy != nullptr && policy->kind() == Value::Kind::string &&
         policy->as_string() != "fp32" && policy->as_string() != "keep";
}

}  // namespace thalia::state
