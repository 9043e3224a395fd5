// The differences between two checkpoints for somebody to read.
#pragma once

#include "cli/terminal/output.h"
#include "thalia/diff.h"

namespace thalia::cli {

/// One line for each difference, with "+", "-" or "~" in front. Of long lists only the beginning is
/// shown unless `all` is set, so that ten thousand changed tensors stay readable.
void print_diff(Output& out, const Diff& diff, bool all);

}  // namespace thalia::cli
