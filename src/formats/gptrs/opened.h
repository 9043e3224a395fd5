// GPTRSCHK and GPTRSTEN files as conversions read them.
#pragma once

#include <filesystem>
#include <memory>

#include "formats/source/opened_file.h"
#include "thalia/formats/gptrs.h"

namespace thalia::formats {

/// InputOptions::legacy takes, beside files of version 1 and configs without a kind, whatever the
/// original takes: without it files are read strictly. @throws as GptrsFile::open().
std::shared_ptr<const OpenedFile> open_gptrs_file(const io::InputFile& input,
                                                  const OpenOptions& options);

/// The same for a file that is open already.
std::shared_ptr<const OpenedFile> opened_gptrs(GptrsFile file);

}  // namespace thalia::formats
