// The differences between two checkpoints for somebody to read.
#pragma once

#include "cli/terminal/output.h"
#include "thalia/diff.h"

namespace thalia::cli {

/// A line a difference, "+", "-" or "~" in front of it; of long lists the beginning unless `all` is
/// set, so that ten thousand changed tensors stay readable.
void print_diff(Output& out, const Diff& diff, bool all);

}  // namespace thalia::cli
