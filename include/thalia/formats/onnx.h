// ONNX models: the tensors of a model as they lie in it, and a model made of tensors.
//
//   const thalia::OnnxFile model = thalia::OnnxFile::open("model.onnx");
//   const thalia::Tensor w = model.read(model.tensors().front().name);
//   thalia::save_onnx("weights.onnx", {{"w", w}});
//
// docs/format/onnx.md
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "thalia/bytes.h"
#include "thalia/detail/held.h"
#include "thalia/options.h"
#include "thalia/storage.h"
#include "thalia/tensor_layout.h"
#include "thalia/tensor_value.h"
#include "thalia/version.h"

namespace thalia {

struct OnnxOpset {
  std::string domain{};  ///< empty: ai.onnx
  std::int64_t version = 0;
  friend bool operator==(const OnnxOpset&, const OnnxOpset&) = default;
};

using OnnxMetadata = std::vector<std::pair<std::string, std::string>>;

/// What a model says of itself. The defaults are what a new one says.
struct OnnxModel {
  std::int64_t ir_version = 8;
  std::vector<OnnxOpset> opset_imports{{.domain = {}, .version = 15}};
  std::string producer_name = "thalia";
  std::string producer_version{library_version()};
  std::string domain{};
  std::int64_t model_version = 0;
  std::string doc_string{};
  std::string graph_name = "weights";
  std::string graph_doc_string{};
  friend bool operator==(const OnnxModel&, const OnnxModel&) = default;
};

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
  static OnnxFile open(const std::filesystem::path& path, const OnnxReadOptions& options = {});
  /// The same for the bytes of a model without files of data. `name` is for messages.
  static OnnxFile from_bytes(StoredBytes bytes, std::string name = {},
                             const OnnxReadOptions& options = {});

  /// Initialisers in the order of the file, then the others.
  const std::vector<OnnxTensor>& tensors() const noexcept;
  const OnnxModel& model() const noexcept;
  const OnnxMetadata& metadata() const noexcept;  ///< metadata_props, in the order of the file
  const OnnxGraph& graph() const noexcept;
  /// The size of the model and the files that it names, as far as they can be opened.
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

struct OnnxSaveOptions {
  OnnxModel model{};  ///< versions are raised where a dtype needs newer ones
  /// Elements of tensors of 1 KiB and more in NAME.data, NAME being the model's file name; nullopt:
  /// where the model would have 2 GiB or more without. docs/format/onnx.md, "Data in another file".
  std::optional<bool> external_data{};
  OutputOptions output{};
  Work work{};  ///< progress and cancel
};

/// Writes a model whose graph has the tensors as initialisers and as outputs, and computes nothing;
/// onnx.checker accepts it. Atomically: the data first, where they go to another file, then the
/// model. Dense, csr and coo tensors; csr becomes coo.
/// @throws IoError; UnsupportedError for dtypes ternary and binary, names that are empty, repeat or
/// are no UTF-8, a shape beyond 2^63, 2 GiB outside of the tensors; UsageError (bad_argument) for a
/// version that no ONNX has, or metadata whose keys repeat.
/// @return bytes of all files.
std::uint64_t save_onnx(const std::filesystem::path& path,
                        const std::vector<std::pair<std::string, Tensor>>& tensors,
                        const OnnxMetadata& metadata = {}, const OnnxSaveOptions& options = {});

}  // namespace thalia
