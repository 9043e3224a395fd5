// protobuf has the length of each message before it. So lengths are added up from the inside
// out before anything is written, and every sum of them is checked for overflow. A sparse tensor's
// positions come before its values, as the payload has them.
#include "formats/onnx/plan.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "base/checked_sum.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "format/extent.h"
#include "format/payload.h"
#include "formats/onnx/data_types.h"
#include "formats/onnx/encode.h"
#include "formats/onnx/wire.h"
#include "formats/source/refuse_tensor.h"

namespace thalia::formats::onnx {
namespace {

// Without inputs that repeat the initialisers; with sparse ones.
constexpr std::int64_t kLeastIr = 4, kLeastSparseIr = 5, kNewestIr = 14;
constexpr std::int64_t kUsualOpset = 15, kMostOpset = std::numeric_limits<std::int32_t>::max();
constexpr std::uint64_t kMostExtent = std::numeric_limits<std::int64_t>::max();

bool is_main_domain(std::string_view domain) {
  return domain.empty() || domain == "ai.onnx";
}

void check_tensor(const SinkTensor& tensor) {
  const TensorLayout& layout = tensor.layout;
  if (tensor.name.empty() || !is_valid_utf8(tensor.name))
    refuse_tensor(tensor.name, "a name that ONNX does not have", "name", printable(tensor.name),
                  "UTF-8, not empty");
  if (find_data_type(layout.dtype) == nullptr) {
    const std::string name(dtype_name(layout.dtype));
    throw UnsupportedDtypeError(name, "ONNX lacks the element type",
                                {.tensor = printable(tensor.name), .value = name});
  }
  if (layout.encoding != Encoding::dense && !is_sparse(layout.encoding)) {
    throw UnsupportedError(ErrorCode::unsupported_feature, "ONNX lacks the encoding",
                           {.tensor = printable(tensor.name), .bound = "dense, csr or coo"});
  }
  const auto extents = layout.shape.extents();
  const auto elements = layout.shape.element_count();
  if (format::payload_length(layout).value_or(kMostExtent + 1) > kMostExtent ||
      elements.value_or(kMostExtent + 1) > kMostExtent ||
      std::ranges::any_of(extents, [](std::uint64_t extent) { return extent > kMostExtent; }))
    refuse_tensor(tensor.name, "a shape that ONNX does not have", "shape", layout.shape.to_string(),
                  "extents, elements and bytes below 2^63");
  // So many positions do not overflow, and more would not rise.
  if (is_sparse(layout.encoding) && layout.nnz > std::min(*elements, kMostExtent / 16))
    refuse_tensor(tensor.name, "more stored elements than there are", "nnz",
                  std::to_string(layout.nnz), layout.shape.to_string());
}

void check_versions(const OnnxModel& model) {
  if (model.ir_version < kLeastIr || model.ir_version > kNewestIr)
    fail_argument(ErrorCode::bad_argument, "ir_version", std::to_string(model.ir_version),
                  fmt::format("{} to {}", kLeastIr, kNewestIr));
  bool has_main = false;
  for (const OnnxOpset& opset : model.opset_imports) {
    if (opset.version < 1 || opset.version > kMostOpset)
      fail_argument(ErrorCode::bad_argument, "opset_imports", std::to_string(opset.version),
                    fmt::format("1 to {}", kMostOpset));
    has_main = has_main || is_main_domain(opset.domain);
  }
  if (!has_main)
    fail_argument(ErrorCode::bad_argument, "opset_imports", "no ai.onnx", "a version of it");
}

void check_texts(const OnnxMetadata& metadata, const OnnxModel& model) {
  CheckedSum bytes;
  const auto check = [&](const char* field, std::string_view text) {
    if (!is_valid_utf8(text))
      fail_argument(ErrorCode::bad_argument, field, printable(text), "UTF-8");
    bytes += text.size();
  };
  check("producer_name", model.producer_name);
  check("producer_version", model.producer_version);
  check("domain", model.domain);
  check("doc_string", model.doc_string);
  check("graph_name", model.graph_name);
  check("graph_doc_string", model.graph_doc_string);
  for (const OnnxOpset& opset : model.opset_imports) check("opset_imports", opset.domain);
  std::unordered_set<std::string_view> keys;
  for (const auto& [key, value] : metadata) {
    check("metadata_props", key);
    check("metadata_props", value);
    if (!keys.insert(key).second)
      fail_argument(ErrorCode::duplicate, "metadata_props", printable(key), "keys that differ");
  }
}

// The fields of a TensorProto but for its elements.
std::string tensor_fields(std::span<const std::uint64_t> extents, int code, std::string_view name) {
  std::string fields;
  Encoder encoder(fields);
  for (const std::uint64_t extent : extents) encoder.varint(1, extent);
  encoder.varint(2, static_cast<unsigned>(code)).text_if_any(8, name);
  return fields;
}

std::string property(std::string_view key, std::string_view value) {
  std::string fields;
  Encoder(fields).text(1, key).text(2, value);
  return fields;
}

constexpr unsigned kRawData = 9, kInitializer = 5, kSparseInitializer = 15;

// A TensorProto in a field of the message around it, up to where its raw_data begin.
std::string with_raw_data(unsigned field, const std::string& fields, std::uint64_t bytes) {
  std::string head;
  Encoder(head).head(field, fields.size() + Encoder::head_bytes(kRawData, bytes) + bytes);
  head += fields;
  Encoder(head).head(kRawData, bytes);
  return head;
}

OnnxPlannedTensor plan_dense(const SinkTensor& tensor, const std::string& location,
                             CheckedSum& data_bytes) {
  const TensorLayout& layout = tensor.layout;
  OnnxPlannedTensor planned{.payload_bytes = *format::payload_length(layout)};
  const std::string fields =
      tensor_fields(layout.shape.extents(), find_data_type(layout.dtype)->code, tensor.name);
  planned.external = !location.empty() && planned.payload_bytes >= kLeastExternalBytes;
  if (!planned.external) {
    planned.head = with_raw_data(kInitializer, fields, planned.payload_bytes);
    return planned;
  }
  // What an overflow leaves here is never written.
  planned.offset = format::align_up(data_bytes.value().value_or(0), kDataAlignment);
  data_bytes += planned.offset - data_bytes.value().value_or(0);
  data_bytes += planned.payload_bytes;
  std::string all = fields;
  Encoder(all)
      .text(13, property("location", location))
      .text(13, property("offset", std::to_string(planned.offset)))
      .text(13, property("length", std::to_string(planned.payload_bytes)))
      .varint(14, 1);
  Encoder(planned.head).text(kInitializer, all);
  return planned;
}

// The positions come before the values, as the payload has them; protobuf takes fields in any
// order.
OnnxPlannedTensor plan_sparse(const SinkTensor& tensor) {
  const TensorLayout& layout = tensor.layout;
  const format::SparseParts parts = *format::sparse_parts(layout);
  OnnxPlannedTensor planned{.payload_bytes = parts.length};
  const std::uint64_t nnz[] = {layout.nnz};
  const std::string indices =
      with_raw_data(2, tensor_fields(nnz, find_data_type(DType::i64)->code, {}), 8 * layout.nnz);
  for (const std::uint64_t extent : layout.shape.extents())
    Encoder(planned.middle).varint(3, extent);
  planned.middle += with_raw_data(
      1, tensor_fields(nnz, find_data_type(layout.dtype)->code, tensor.name), parts.values.length);
  Encoder(planned.head)
      .head(kSparseInitializer,
            indices.size() + 8 * layout.nnz + planned.middle.size() + parts.values.length);
  planned.head += indices;
  return planned;
}

// An output of the graph: an initialiser that no node uses is dropped by programs that run models.
std::string output(const SinkTensor& tensor) {
  const TensorLayout& layout = tensor.layout;
  std::string shape;
  for (const std::uint64_t extent : layout.shape.extents()) {
    std::string dimension;
    Encoder(dimension).varint(1, extent);
    Encoder(shape).text(1, dimension);
  }
  std::string of_tensor, type, info;
  Encoder(of_tensor)
      .varint(1, static_cast<unsigned>(find_data_type(layout.dtype)->code))
      .text(2, shape);
  Encoder(type).text(is_sparse(layout.encoding) ? 8 : 1, of_tensor);
  Encoder(info).text(1, tensor.name).text(2, type);
  return info;
}

std::uint64_t bytes_in_model(const OnnxPlannedTensor& planned, const SinkTensor& tensor) {
  const std::uint64_t around = planned.head.size() + planned.middle.size();
  if (planned.external) return around;
  if (!is_sparse(tensor.layout.encoding)) return around + planned.payload_bytes;
  return around + 8 * tensor.layout.nnz + format::sparse_parts(tensor.layout)->values.length;
}

}  // namespace

void check_input(const std::vector<SinkTensor>& tensors, const OnnxMetadata& metadata,
                 OnnxModel& model) {
  check_texts(metadata, model);
  check_versions(model);
  if (model.graph_name.empty()) model.graph_name = OnnxModel{}.graph_name;
  std::unordered_set<std::string_view> names;
  std::int64_t ir_version = 0, opset = 0;
  for (const SinkTensor& tensor : tensors) {
    check_tensor(tensor);
    if (!names.insert(tensor.name).second)
      refuse_tensor(tensor.name, "the name repeats", "name", printable(tensor.name),
                    "names that differ");
    const DataType& type = *find_data_type(tensor.layout.dtype);
    ir_version = std::max<std::int64_t>(ir_version, type.ir_version);
    opset = std::max<std::int64_t>(opset, type.opset);
    if (is_sparse(tensor.layout.encoding)) ir_version = std::max(ir_version, kLeastSparseIr);
  }
  // A version that was enough for all of ONNX stays as it is: byte for byte, where it can.
  model.ir_version = std::max(model.ir_version, ir_version);
  for (OnnxOpset& import : model.opset_imports) {
    if (is_main_domain(import.domain) && opset > find_data_type(DType::f32)->opset)
      import.version = std::max(import.version, opset);
  }
}

void correct_versions(OnnxModel& model) {
  model.ir_version = std::clamp(model.ir_version, kLeastIr, kNewestIr);
  std::erase_if(model.opset_imports, [](const OnnxOpset& opset) {
    return opset.version < 1 || opset.version > kMostOpset;
  });
  if (std::ranges::none_of(model.opset_imports, is_main_domain, &OnnxOpset::domain))
    model.opset_imports.push_back({.domain = {}, .version = kUsualOpset});
}

OnnxPlan make_plan(const std::vector<SinkTensor>& tensors, const OnnxMetadata& metadata,
                   const OnnxModel& model, const std::string& location) {
  OnnxPlan plan;
  CheckedSum in_graph, data_bytes, payload_bytes;
  std::string graph_front, graph_back;
  Encoder(graph_front).text(2, model.graph_name);
  for (const SinkTensor& tensor : tensors) {
    plan.tensors.push_back(is_sparse(tensor.layout.encoding)
                               ? plan_sparse(tensor)
                               : plan_dense(tensor, location, data_bytes));
    in_graph += bytes_in_model(plan.tensors.back(), tensor);
    payload_bytes += plan.tensors.back().payload_bytes;
  }
  Encoder(graph_back).text_if_any(10, model.graph_doc_string);
  for (const SinkTensor& tensor : tensors) Encoder(graph_back).text(12, output(tensor));
  in_graph += graph_front.size() + graph_back.size();

  Encoder front(plan.front);
  front.varint(1, static_cast<std::uint64_t>(model.ir_version))
      .text_if_any(2, model.producer_name)
      .text_if_any(3, model.producer_version)
      .text_if_any(4, model.domain);
  if (model.model_version != 0) front.varint(5, static_cast<std::uint64_t>(model.model_version));
  front.text_if_any(6, model.doc_string).head(7, in_graph.value().value_or(0));
  const std::uint64_t front_bytes = plan.front.size();
  plan.front += graph_front;

  const std::uint64_t in_back = graph_back.size();
  plan.back = std::move(graph_back);
  Encoder back(plan.back);
  for (const OnnxOpset& import : model.opset_imports) {
    std::string fields;
    Encoder(fields).text(1, import.domain).varint(2, static_cast<std::uint64_t>(import.version));
    back.text(8, fields);
  }
  for (const auto& [key, value] : metadata) back.text(14, property(key, value));

  constexpr std::uint64_t kTooMany = std::numeric_limits<std::uint64_t>::max();
  CheckedSum all = in_graph;
  all += front_bytes + plan.back.size() - in_back;
  plan.model_bytes = all.value().value_or(kTooMany);
  plan.data_bytes = data_bytes.value().value_or(kTooMany);
  plan.payload_bytes = payload_bytes.value().value_or(kTooMany);
  return plan;
}

}  // namespace thalia::formats::onnx
