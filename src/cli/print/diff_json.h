// The differences between two checkpoints for a program to read.
#pragma once

#include <string>

#include "cli/terminal/output.h"
#include "thalia/diff.h"

namespace thalia::cli {

/// One JSON object, always complete.
void print_diff_json(Output& out, const std::string& before, const std::string& after,
                     const Diff& diff);

}  // namespace thalia::cli
