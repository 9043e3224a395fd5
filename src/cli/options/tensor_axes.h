// What the axes of tensors count, on the command line: for commands that change how many neurons a
// region has.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "thalia/state/brain.h"

namespace thalia::cli {

/// Declares --axes.
CLI::Option* add_axes(CLI::App& app, std::vector<std::string>& texts);
/// Reads what --axes was given. @throws UsageError.
TensorAxes tensor_axes(const std::vector<std::string>& texts);

}  // namespace thalia::cli
