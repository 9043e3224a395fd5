// .mst files, read through the interface of all formats.
#pragma once

#include "interop/shared/tensor_source.h"

namespace thalia::interop {

/// An OpenSource.
std::shared_ptr<const TensorSource> open_mst_source(const std::filesystem::path& path,
                                                    const SourceOptions& options);

}  // namespace thalia::interop
