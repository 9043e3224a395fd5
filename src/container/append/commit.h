// Brings an append to the disk. docs/format/writing.md, "In-place append".
#pragma once

#include "container/draft/draft.h"
#include "container/file/open_file.h"
#include "io/file/locked_file.h"
#include "thalia/append.h"

namespace thalia::container {

/// Writes what `draft`, made by AppendPlan, has behind the end of `old`, and then the header.
/// @param old the locked file as it was when it was opened, verified on touch.
/// @return what AppendResult says, but for `seconds`. @throws as Appender::commit().
AppendResult write_append(const io::LockedFile& file, const detail::OpenFile& old, Draft& draft,
                          const AppendOptions& options);

}  // namespace thalia::container
