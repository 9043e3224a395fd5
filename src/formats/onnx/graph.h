// A GraphProto: its tensors, and how much else is in it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "formats/onnx/file.h"
#include "formats/onnx/model.h"
#include "io/memory/allocation_limit.h"

namespace thalia::formats::onnx {

/// Reads the main graph, and the graphs in it, into a model.
class GraphReader {
 public:
  /// @param constants also the tensors in nodes.
  GraphReader(ByteSpan file, bool constants, const ReadLimits& limits, ParsedModel& parsed)
      : file_(file),
        constants_(constants),
        limits_(limits),
        budget_(limits, file.size()),
        parsed_(parsed) {}

  /// The main graph. @throws FormatError, UnsupportedError.
  void read(Message&& message);
  /// Memory that is about to be held, of this reader's or another's making, against the limit.
  void hold(std::uint64_t bytes) { budget_.take("GraphProto", bytes); }

 private:
  // What comes before a nested tensor's own name: "If_0/then_branch/".
  using Path = std::string;

  void graph(Message&& message, const Path& path, bool is_main);
  void main_field(const Message& message, const Field& field);
  void node(const Message& graph, const Field& in_graph, const Path& path);
  void attribute(Message&& message, const Path& path, const std::string& constant);
  void initialiser(const Message& message, const Field& field, bool is_sparse);
  void constant(const Message& message, const Field& field, bool is_sparse, std::string name);
  void add(std::string name, bool is_initialiser, TensorLayout layout, OnnxStored stored);
  void name_constants();

  ByteSpan file_;
  bool constants_;
  const ReadLimits& limits_;
  io::MemoryBudget budget_;
  ParsedModel& parsed_;
  // The tensors of nodes: they come after the initialisers.
  std::vector<OnnxTensor> constant_tensors_;
  std::vector<OnnxStored> constant_stored_;
  std::unordered_set<std::string_view> names_;  ///< in the file, or in constant_tensors_
  std::vector<std::string_view> outputs_;
};

}  // namespace thalia::formats::onnx
