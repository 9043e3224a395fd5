// The differences between two checkpoints for somebody to read.
#pragma once

#include <string>

#include "cli/terminal/output.h"
#include "thalia/state/diff.h"

namespace thalia::cli {

/// One line for each difference, with "+", "-" or "~" in front. Only the beginning of a long list
/// is shown unless `all` is set, so that ten thousand changed tensors stay readable.
void print_diff(Output& out, const Diff& diff, bool all);

/// What the tables say of it: "f32 -> f16, content"; of one that is added or removed what it is.
std::string tensor_change_text(const TensorDiff& tensor);

}  // namespace thalia::cli
