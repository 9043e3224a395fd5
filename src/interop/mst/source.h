// .mst files, read through the interface of all formats.
#pragma once

#include "interop/shared/opened_file.h"

namespace thalia::interop {

/// An OpenFormat.
std::shared_ptr<const OpenedFile> open_mst_source(const std::filesystem::path& path,
                                                  const OpenOptions& options);

}  // namespace thalia::interop
