// ONNX models as files of tensors.
#pragma once

#include <filesystem>
#include <memory>

#include "interop/shared/opened_file.h"

namespace thalia::interop {

/// An OpenFormat.
std::shared_ptr<const OpenedFile> open_onnx_source(const std::filesystem::path& path,
                                                   const OpenOptions& options);

}  // namespace thalia::interop
