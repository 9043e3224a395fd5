#include "formats/onnx/model.h"

#include <string>
#include <unordered_set>
#include <utility>

#include "base/utf8.h"
#include "formats/onnx/graph.h"

namespace thalia::formats::onnx {
namespace {

OnnxOpset parse_opset(Message&& message) {
  OnnxOpset opset;
  Field field;
  while (message.next(field)) {
    if (field.number == 1) opset.domain = message.text(field, "domain");
    if (field.number == 2)
      opset.version = static_cast<std::int64_t>(message.varint(field, "version"));
  }
  return opset;
}

std::pair<std::string, std::string> parse_property(Message&& message) {
  std::pair<std::string, std::string> property;
  Field field;
  while (message.next(field)) {
    if (field.number == 1) property.first = message.text(field, "key");
    if (field.number == 2) property.second = message.text(field, "value");
  }
  return property;
}

}  // namespace

ParsedModel parse_model(ByteSpan file, bool constants, const ReadLimits& limits) {
  ParsedModel parsed;
  OnnxModel& model = parsed.model;
  GraphReader reader(file, constants, limits, parsed);
  model = {.ir_version = 0,
           .opset_imports = {},
           .producer_name = {},
           .producer_version = {},
           .graph_name = {}};
  Message message = Message::whole(file, "ModelProto");
  bool has_graph = false;
  Field field;
  while (message.next(field)) {
    switch (field.number) {
      case 1:
        model.ir_version = static_cast<std::int64_t>(message.varint(field, "ir_version"));
        break;
      case 2:
        model.producer_name = message.text(field, "producer_name");
        break;
      case 3:
        model.producer_version = message.text(field, "producer_version");
        break;
      case 4:
        model.domain = message.text(field, "domain");
        break;
      case 5:
        model.model_version = static_cast<std::int64_t>(message.varint(field, "model_version"));
        break;
      case 6:
        model.doc_string = message.text(field, "doc_string");
        break;
      case 7:
        if (has_graph)
          message.fail(ErrorCode::inconsistent, "graph", field.offset, "", "", "the field repeats");
        has_graph = true;
        reader.read(message.inner(field, "GraphProto"));
        break;
      case 8:
        reader.hold(sizeof(OnnxOpset));
        model.opset_imports.push_back(parse_opset(message.inner(field, "OperatorSetIdProto")));
        break;
      case 14:
        reader.hold(2 * sizeof(std::string));
        parsed.metadata.push_back(parse_property(message.inner(field, "StringStringEntryProto")));
        break;
      case 20:
        parsed.graph.training = true;
        break;
      case 25:
        ++parsed.graph.functions;
        break;
      default:
        break;
    }
  }
  std::unordered_set<std::string_view> keys;
  for (const auto& [key, value] : parsed.metadata) {
    if (!keys.insert(key).second)
      message.fail(ErrorCode::inconsistent, "metadata_props", 0, printable(key), "",
                   "the key is there twice");
  }
  // Any bytes that happen to be a message would be a model else, and so would an empty file.
  if (model.ir_version < 1)
    message.fail(ErrorCode::bad_value, "ir_version", 0, std::to_string(model.ir_version),
                 "1 or more");
  if (!has_graph) message.fail(ErrorCode::bad_value, "graph", 0, "none", "a graph");
  return parsed;
}

}  // namespace thalia::formats::onnx
