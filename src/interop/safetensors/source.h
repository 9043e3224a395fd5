// A safetensors model as a source of tensors.
#pragma once

#include <filesystem>
#include <memory>

#include "interop/shared/source_file.h"

namespace thalia::interop {

/// A file, an index, or a folder: SafetensorsModel::open(). @throws as that.
std::shared_ptr<const SourceFile> open_safetensors_source(const std::filesystem::path& path,
                                                          const SourceOptions& options);

}  // namespace thalia::interop
