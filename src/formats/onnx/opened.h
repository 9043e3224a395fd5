// ONNX models as files of tensors.
#pragma once

#include <filesystem>
#include <memory>

#include "formats/source/opened_file.h"

namespace thalia::formats {

/// An OpenFormat.
std::shared_ptr<const OpenedFile> open_onnx_file(const io::InputFile& input,
                                                 const OpenOptions& options);

}  // namespace thalia::formats
