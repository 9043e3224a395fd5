// Names of regions on the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/terminal/option.h"
#include "thalia/options.h"

namespace thalia::cli {

/// Declares --regions A,B; `offers` is kRegions, or which file else they are of.
CLI::Option* add_region_names(CLI::App& app, std::string& list, const char* offers);

/// Declares --prefix: of one brain, or of each file.
CLI::Option* add_prefix(CLI::App& app, auto& value, std::string help) {
  return add_option(app, "--prefix TEXT", value, std::move(help));
}

/// The names in `list`, separated by commas, as the file at `path` has them: as they are typed
/// if it has such a region, else with escapes undone, else those that they fit as patterns.
/// @throws UsageError (not_found) for a pattern that fits none; what opening the file throws.
std::vector<std::string> region_names(std::string_view list, const std::string& path,
                                      ReadOptions options);

}  // namespace thalia::cli
