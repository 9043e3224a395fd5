// ONNX models: the tensors of a model as they lie in it, and a model made of tensors.
//
//   const thalia::Tensor w = thalia::open_any("model.onnx").read("w");
//   thalia::save_onnx("weights.onnx", {{"w", w}});
//
// docs/format/onnx.md
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "thalia/options.h"
#include "thalia/state/tensor_value.h"
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
