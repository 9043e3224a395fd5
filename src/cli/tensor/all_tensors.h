// Every tensor of a file, or those that patterns fit, whichever format the file has.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/tensor/tensor_source.h"
#include "thalia/delta.h"

namespace thalia::cli {

/// Calls `visit` with each tensor that one of the patterns fits, or with all where there are no
/// patterns, in the order of the file, matrices of connections last. A tensor that has to be
/// restored whole is in memory during its call. `option` is what the user calls the patterns.
/// @throws UsageError (not_found) at the end, for a pattern that fits nothing; what opening the
/// file and reading it throws.
void visit_tensors(const std::filesystem::path& path, const char* option,
                   const std::vector<std::string>& patterns, const ChainOptions& options,
                   const std::function<void(const TensorSource&)>& visit);

}  // namespace thalia::cli
