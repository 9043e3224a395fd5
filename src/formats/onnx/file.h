// An open ONNX model, with all that the format alone says of its tensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "io/file/input_file.h"
#include "thalia/detail/held.h"
#include "thalia/formats/onnx.h"
#include "thalia/options.h"
#include "thalia/state/tensor_value.h"
#include "thalia/storage.h"
#include "thalia/types.h"

namespace thalia::formats::onnx {

/// What else is in a model, and is not read.
struct OnnxGraph {
  std::uint64_t nodes = 0;  ///< of the main graph
  std::uint64_t inputs = 0;
  std::uint64_t outputs = 0;
  bool outputs_are_tensors = false;  ///< the tensors, in their order: nothing is computed
  std::uint64_t unread_tensors = 0;  ///< in nodes, of types that are not read: strings
  std::uint64_t functions = 0;
  bool training = false;
  std::uint64_t annotations = 0;  ///< doc strings and properties of tensors and of the graph
};

struct OnnxTensor {
  std::string name;  ///< of an initialiser its own; docs/format/onnx.md says what others are called
  TensorLayout layout{};    ///< of what read() gives: dense or coo
  bool initialiser = true;  ///< else of a node's attribute: a constant, or in a subgraph
  std::string location{};   ///< the file that has its elements; empty: the model's own
  std::optional<std::uint64_t> offset{};  ///< in that file, where elements lie there as they are
  std::uint64_t stored_bytes = 0;         ///< of its message, or in the other file
  bool has_checksum = false;              ///< the model has the SHA-1 of that other file
};

struct OnnxReadOptions {
  InputOptions input{};
  /// Files that a model names must lie in this folder once links are followed; empty: in its
  /// own, or in that of the file that its name is a link to.
  std::filesystem::path data_folder{};
  /// False: initialisers of the main graph alone.
  bool constants = true;
  std::stop_token cancel{};
};

/// A mapped ONNX model. A cheap handle; immutable; any number of threads.
class OnnxFile {
 public:
  /// Files with elements are opened when a tensor is read. @throws IoError; FormatError naming
  /// field, offset and bound; UnsupportedDtypeError for an initialiser of strings, UnsupportedError
  /// for more than 8 dimensions, segments, a model of 2 GiB and more.
  static OnnxFile open(const io::InputFile& input, const OnnxReadOptions& options = {});
  /// The same of a model's bytes, which has no files beside it. `name` is for messages.
  static OnnxFile from_bytes(StoredBytes bytes, std::string name = {},
                             const OnnxReadOptions& options = {});

  /// Initialisers in the order of the file, then the others.
  const std::vector<OnnxTensor>& tensors() const noexcept;
  const OnnxModel& model() const noexcept;
  const OnnxMetadata& metadata() const noexcept;  ///< metadata_props, in the order of the file
  const OnnxGraph& graph() const noexcept;
  /// The bytes of the model and of the files that it names, as far as they can be opened.
  std::uint64_t file_bytes() const;

  /// In the mapping where the elements lie as they are, and holds it open then; else decoded.
  /// @throws UsageError (not_found); FormatError; IoError, UnsupportedError of other files.
  Tensor read(std::string_view name) const;
  Tensor read(std::size_t i) const;  ///< tensors()[i]
  /// Reads tensors()[i], and where the model has a checksum of its data file, all of that file
  /// once.
  /// @throws as read(); IntegrityError.
  void check(std::size_t i) const;

 private:
  struct Impl;
  detail::Shared<const Impl> impl_;
};

}  // namespace thalia::formats::onnx
