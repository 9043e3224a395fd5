// What the file beside a model is called, so that a model always has the data that it was written
// with.
#pragma once

#include <filesystem>
#include <string>

#include "thalia/options.h"

namespace thalia::formats::onnx {

struct DataFileName {
  std::string name{};    ///< of the file to write: one that the model at the path does not use
  std::string unused{};  ///< of the file that is no longer used once that model is replaced
};

/// @param model the path of the model that is about to be written, links resolved. @throws
/// UnsupportedError where its name is no UTF-8.
DataFileName data_file_name(const std::filesystem::path& model, const OutputOptions& output);

}  // namespace thalia::formats::onnx
