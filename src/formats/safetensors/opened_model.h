// The files of a model, open and parsed, and whether they are those that the index names.
#pragma once

#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/safetensors/index.h"
#include "formats/safetensors/index_match.h"
#include "formats/safetensors/parse.h"
#include "formats/source/piece_sink.h"
#include "io/file/file_bytes.h"
#include "io/file/input_file.h"
#include "thalia/formats/safetensors.h"
#include "thalia/state/tensor_value.h"

namespace thalia::formats::safetensors {

struct ModelFile {
  std::string name;
  std::filesystem::path path;
  std::shared_ptr<const io::FileBytes> bytes{};  ///< null where `fault` is not
  ParsedSafetensors parsed{};
  std::exception_ptr fault{};  ///< an Error, why the file cannot be read
};

struct OpenedModel {
  std::filesystem::path path;               ///< of the index or the file
  std::optional<std::string> index_text{};  ///< nullopt: there is no index
  std::shared_ptr<const io::FileBytes> index_file{};
  ModelIndex index{};
  std::vector<ModelFile> files{};  ///< as in the index
};

/// Without a look at what the files say of each other; a file that cannot be read is a fault there.
/// @throws UsageError, IoError, FormatError if there is no model or its index cannot be read.
OpenedModel open_files(const io::InputFile& input, const SafetensorsModelOptions& options);

/// A model that is replaced more often than this while it is opened is an error.
inline constexpr int kOpenTries = 4;
/// Whether another index is at the path by now.
bool was_replaced(const OpenedModel& model);

/// Empty if there is no index. Files with a fault are not known.
std::vector<Mismatch> compare_with_index(const OpenedModel& model);

/// A model in which everything fits. @throws as open_safetensors_file().
OpenedModel open_model(const io::InputFile& input, const SafetensorsModelOptions& options);
/// The same, whatever is wrong with it. @throws as open_files().
OpenedModel open_faulty(const io::InputFile& input, const SafetensorsModelOptions& options);
/// All that is wrong with it: check_safetensors_model().
std::vector<SafetensorsFinding> findings_of(const OpenedModel& model);
/// @throws the first fault of a file, or what does not fit.
void require_whole(const OpenedModel& model);

/// The tensor in its file, of which its bytes alone are read if they are copied. @throws
/// IoError, FormatError (truncated) as Access says.
Tensor tensor_of(const ModelFile& file, const NamedArray& tensor);
/// Its bytes in order; of a file that is copied in pieces, none of which is kept. @throws the same.
void visit_tensor(const ModelFile& file, const NamedArray& tensor, const PieceSink& sink);

}  // namespace thalia::formats::safetensors
