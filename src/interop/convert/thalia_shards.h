// A model in several .thalia files with an index, as transformers.save_pretrained() of this package
// writes it.
#pragma once

#include <filesystem>
#include <memory>

#include "interop/shared/source_file.h"

namespace thalia::interop {

/// By its index or the folder of that. Tensors are file by file, by the names that they have in
/// formats without regions. @throws as opening each of its files; FormatError (inconsistent) where
/// index and files do not have the same tensors.
std::shared_ptr<const SourceFile> open_thalia_shards(const std::filesystem::path& path,
                                                     const SourceOptions& options);

}  // namespace thalia::interop
