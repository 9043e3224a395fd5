// GPTRSCHK and GPTRSTEN files as conversions read them.
#pragma once

#include <filesystem>
#include <memory>

#include "interop/shared/source_file.h"
#include "thalia/formats/gptrs.h"

namespace thalia::interop {

/// InputOptions::legacy takes, beside files of version 1 and configs without a kind, whatever the
/// original takes: without it files are read strictly. @throws as GptrsFile::open().
std::shared_ptr<const SourceFile> open_gptrs_source(const std::filesystem::path& path,
                                                    const SourceOptions& options);

/// Of an open file.
std::shared_ptr<const SourceFile> gptrs_source(GptrsFile file);

}  // namespace thalia::interop
