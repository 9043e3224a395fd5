// How much differs between two checkpoints, a line for each tensor.
#pragma once

#include "cli/terminal/output.h"
#include "thalia/state/diff.h"

namespace thalia::cli {

/// One line for each tensor that differs: how many of its numbers do, and a bar of as many "~"
/// (changed), "+" (added) and "-" (removed), scaled so that the longest fits into `columns`; then
/// the sums. The diff has to have the values of changed tensors.
void print_diff_stat(Output& out, const Diff& diff, std::size_t columns);

/// Columns of the terminal that standard output is; 80 if it is not one.
std::size_t output_columns();

}  // namespace thalia::cli
