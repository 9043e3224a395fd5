// .mst files, read through the interface of all formats.
#pragma once

#include "formats/source/opened_file.h"

namespace thalia::formats {

/// An OpenFormat.
std::shared_ptr<const OpenedFile> open_mst_file(const io::InputFile& input,
                                                const OpenOptions& options);

}  // namespace thalia::formats
