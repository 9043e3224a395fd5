// Folders that look like Orbax's, as the original mithril program writes them, read through the
// interface of all formats.
#pragma once

#include "formats/source/opened_file.h"

namespace thalia::formats {

/// Whether the path is a folder with the two files by which such a folder is known. Orbax's own
/// have them too: those are refused when they are opened.
bool is_orbax_folder(const std::filesystem::path& path);

/// An OpenFormat of a folder. Nothing outside of it is opened, whatever its names and links say.
/// Every array's header is checked, and its file opened again when it is read.
std::shared_ptr<const OpenedFile> open_orbax_file(const io::InputFile& input,
                                                  const OpenOptions& options);

}  // namespace thalia::formats
