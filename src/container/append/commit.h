// Brings an append to the disk. docs/format/writing.md, "In-place append".
#pragma once

#include "container/file/open_file.h"
#include "container/plan/file_plan.h"
#include "io/file/locked_file.h"
#include "thalia/append.h"

namespace thalia::container {

/// Writes what `plan`, made by AppendPlan, has after the end of `old`, and then the header.
/// @param old the locked file as it was when it was opened, verified on touch.
/// @return what AppendResult says, but for `seconds`. @throws as Appender::commit().
AppendResult write_append(const io::LockedFile& file, const detail::OpenFile& old, FilePlan& plan,
                          const AppendOptions& options);

}  // namespace thalia::container
