// What opening a side file leaves unchecked.
#pragma once

#include <memory>

#include "container/file/open_file.h"
#include "container/verify/findings.h"

namespace thalia::container {

/// Opens the source of a side file as OpenFile::over() does. @throws the same, but FormatError
/// (inconsistent) where no extent holds what opening takes.
std::shared_ptr<const detail::OpenFile> open_side_file(std::shared_ptr<const io::FileBytes> file,
                                                       const ReadOptions& options);

/// Checks that the source is as long as the side file says, and that the extents hold all that they
/// have to.
void verify_side_file(const detail::OpenFile& file, Findings& findings);

}  // namespace thalia::container
