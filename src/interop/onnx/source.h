// ONNX models as files of tensors.
#pragma once

#include <filesystem>
#include <memory>

#include "interop/shared/source_file.h"

namespace thalia::interop {

/// An OpenSource.
std::shared_ptr<const SourceFile> open_onnx_source(const std::filesystem::path& path,
                                                   const SourceOptions& options);

}  // namespace thalia::interop
