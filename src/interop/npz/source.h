// The arrays of .npy and .npz files for conversions. The types OpenSource of source_file.h.
#pragma once

#include <filesystem>
#include <memory>

#include "interop/shared/source_file.h"

namespace thalia::interop {

/// Tensors are called as numpy.load calls the arrays. Reading compares CRC-32s, unless the options
/// say Verification::off.
std::shared_ptr<const SourceFile> open_npz_source(const std::filesystem::path& path,
                                                  const SourceOptions& options);
/// One tensor, called as the file without its ".npy".
std::shared_ptr<const SourceFile> open_npy_source(const std::filesystem::path& path,
                                                  const SourceOptions& options);

}  // namespace thalia::interop
