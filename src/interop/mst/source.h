// .mst files, read through the interface of all formats.
#pragma once

#include "interop/shared/source_file.h"

namespace thalia::interop {

/// An OpenSource.
std::shared_ptr<const SourceFile> open_mst_source(const std::filesystem::path& path,
                                                  const SourceOptions& options);

}  // namespace thalia::interop
