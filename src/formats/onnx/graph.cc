// The walk descends into nodes, because many programs put weights there: as constants, and in the
// graphs of If and Loop. Every field is looked at twice at most, and Message bounds the depth.
#include "formats/onnx/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/onnx/file.h"
#include "formats/onnx/sparse.h"

namespace thalia::formats::onnx {
namespace {

// Longer names of nodes are cut where they name a tensor: the names of nested ones would grow with
// the square of the file.
constexpr std::size_t kNodeNameBytes = 256;
// What lies in deeper nodes than this many bytes of names is named after those in front alone: a
// path is made for each node, which may be of four bytes.
constexpr std::size_t kPathBytes = 1024;

// Either kind of tensor, and what it is read as.
OnnxStored parse_either(Message&& message, bool is_sparse, TensorLayout& layout) {
  if (is_sparse) return parse_sparse(std::move(message), layout);
  OnnxStored stored{.values = parse_tensor_proto(std::move(message))};
  layout = {.dtype = stored.values.type->dtype, .shape = stored.values.shape};
  return stored;
}

std::string short_name(std::string_view name) {
  return std::string(utf8_prefix(name, kNodeNameBytes));
}

}  // namespace

void GraphReader::read(Message&& message) {
  graph(std::move(message), {}, true);
  OnnxGraph& graph = parsed_.graph;
  graph.outputs_are_tensors =
      graph.nodes == 0 && graph.inputs == 0 &&
      std::ranges::equal(outputs_, parsed_.tensors, {}, {}, &OnnxTensor::name);
  name_constants();
}

void GraphReader::add(std::string name, bool is_initialiser, TensorLayout layout,
                      OnnxStored stored) {
  auto& tensors = is_initialiser ? parsed_.tensors : constant_tensors_;
  const std::uint64_t count = parsed_.tensors.size() + constant_tensors_.size();
  if (count == limits_.max_tensors)
    fail_limit("GraphProto", "max_tensors", count + 1, limits_.max_tensors);
  hold(sizeof(OnnxTensor) + sizeof(OnnxStored) + 3 * name.size());
  OnnxTensor tensor{.name = std::move(name), .layout = layout, .initialiser = is_initialiser};
  const TensorProto& values = stored.values;
  if (stored.indices) {
    tensor.stored_bytes = values.message.length + stored.indices->message.length;
  } else if (values.external) {
    tensor.location = values.external->location;
    tensor.offset = values.external->offset;
    tensor.stored_bytes = values.bytes;
    tensor.has_checksum = !values.external->checksum.empty();
  } else if (values.raw) {
    tensor.offset = values.raw->offset;
    tensor.stored_bytes = values.raw->length;
  } else {
    tensor.stored_bytes = values.message.length;
  }
  if (values.annotated && is_initialiser) ++parsed_.graph.annotations;
  tensors.push_back(std::move(tensor));
  (is_initialiser ? parsed_.stored : constant_stored_).push_back(std::move(stored));
}

void GraphReader::initialiser(const Message& message, const Field& field, bool is_sparse) {
  TensorLayout layout;
  OnnxStored stored = parse_either(
      message.inner(field, is_sparse ? "SparseTensorProto" : "TensorProto"), is_sparse, layout);
  const std::string_view name = stored.values.name;
  if (name.empty())
    message.fail(ErrorCode::bad_name, "initializer", field.offset, "no name", "a name");
  if (!names_.insert(name).second)
    message.fail(ErrorCode::bad_name, "initializer", field.offset, printable(name), "",
                 "the name repeats");
  add(std::string(name), true, layout, std::move(stored));
}

void GraphReader::constant(const Message& message, const Field& field, bool is_sparse,
                           std::string name) {
  TensorLayout layout;
  OnnxStored stored;
  try {
    stored = parse_either(message.inner(field, is_sparse ? "SparseTensorProto" : "TensorProto"),
                          is_sparse, layout);
  } catch (const UnsupportedError&) {
    // Strings above all, which are a graph's business.
    ++parsed_.graph.unread_tensors;
    return;
  }
  // A graph's initialiser has a name of its own, after the path.
  if (name.empty() || name.back() == '/') name += short_name(stored.values.name);
  add(std::move(name), false, layout, std::move(stored));
}

void GraphReader::attribute(Message&& message, const Path& path, const std::string& constant_name) {
  enum : unsigned {
    kName = 1,
    kTensor = 5,
    kGraph = 6,
    kTensors = 10,
    kGraphs = 11,
    kSparseTensor = 22,
    kSparseTensors = 23,
  };
  Field field;
  std::string name;
  Message first = Message::again(file_, message.extent(), "AttributeProto");
  while (first.next(field))
    if (field.number == kName) name = short_name(first.text(field, "name"));
  std::uint64_t count = 0;
  const auto numbered = [&](unsigned number, const char* end) {
    const bool several = number == kTensors || number == kGraphs || number == kSparseTensors;
    return fmt::format("{}{}{}{}", path, name, several ? fmt::format("/{}", count++) : "", end);
  };
  while (message.next(field)) {
    switch (field.number) {
      case kTensor:
      case kSparseTensor:
        constant(message, field, field.number == kSparseTensor,
                 constant_name.empty() ? numbered(field.number, "") : constant_name);
        break;
      case kTensors:
      case kSparseTensors:
        constant(message, field, field.number == kSparseTensors, numbered(field.number, ""));
        break;
      case kGraph:
      case kGraphs:
        graph(message.inner(field, "GraphProto"),
              path.size() > kPathBytes ? path : numbered(field.number, "/"), false);
        break;
      default:
        break;
    }
  }
}

void GraphReader::node(const Message& graph, const Field& in_graph, const Path& path) {
  enum : unsigned { kOutput = 2, kName = 3, kType = 4, kAttribute = 5 };
  Field field;
  std::string_view name, type, output;
  bool has_output = false, has_attributes = false;
  Message first = graph.inner(in_graph, "NodeProto");
  while (first.next(field)) {
    if (field.number == kOutput && !has_output) {
      output = first.text(field, "output");
      has_output = true;
    }
    if (field.number == kName) name = first.text(field, "name");
    if (field.number == kType) type = first.text(field, "op_type");
    has_attributes = has_attributes || field.number == kAttribute;
  }
  if (!has_attributes) return;
  const std::string constant =
      type == "Constant" && !output.empty() ? path + short_name(output) : std::string();
  const Path below = path.size() > kPathBytes ? path
                                              : path +
                                                    short_name(!name.empty()     ? name
                                                               : !output.empty() ? output
                                                                                 : type) +
                                                    "/";
  Message message = graph.inner(in_graph, "NodeProto");
  while (message.next(field))
    if (field.number == kAttribute)
      attribute(message.inner(field, "AttributeProto"), below, constant);
}

void GraphReader::graph(Message&& message, const Path& path, bool is_main) {
  enum : unsigned { kNode = 1, kInitializer = 5, kSparse = 15 };
  Field field;
  while (message.next(field)) {
    if (field.number == kNode) {
      if (is_main) ++parsed_.graph.nodes;
      if (constants_) node(message, field, path);
    } else if (field.number == kInitializer || field.number == kSparse) {
      if (is_main) {
        initialiser(message, field, field.number == kSparse);
      } else {
        constant(message, field, field.number == kSparse, path);
      }
    } else if (is_main) {
      main_field(message, field);
    }
  }
}

void GraphReader::main_field(const Message& message, const Field& field) {
  switch (field.number) {
    case 2:
      parsed_.model.graph_name = message.text(field, "name");
      break;
    case 10:
      parsed_.model.graph_doc_string = message.text(field, "doc_string");
      break;
    case 11:
      ++parsed_.graph.inputs;
      break;
    case 12: {
      ++parsed_.graph.outputs;
      Message output = message.inner(field, "ValueInfoProto");
      Field inner;
      std::string_view name;
      while (output.next(inner))
        if (inner.number == 1) name = output.text(inner, "name");
      hold(sizeof(std::string_view));
      outputs_.push_back(name);
      break;
    }
    case 14:
    case 16:
      ++parsed_.graph.annotations;
      break;
    default:
      break;
  }
}

// Names of nodes are different only within a graph, and need not be there.
void GraphReader::name_constants() {
  std::unordered_map<std::string, std::uint64_t> repeated;
  for (OnnxTensor& tensor : constant_tensors_) {
    const std::string asked_for = tensor.name.empty() ? "constant" : tensor.name;
    tensor.name = asked_for;
    if (!names_.insert(tensor.name).second) {
      std::uint64_t& number = repeated.emplace(asked_for, 1).first->second;
      do {
        tensor.name = fmt::format("{}#{}", asked_for, ++number);
      } while (!names_.insert(tensor.name).second);
    }
  }
  std::ranges::move(constant_tensors_, std::back_inserter(parsed_.tensors));
  std::ranges::move(constant_stored_, std::back_inserter(parsed_.stored));
}

}  // namespace thalia::formats::onnx
