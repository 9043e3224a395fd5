// Files of version 0.1, which the original program wrote, as info, ls and verify show them.
#pragma once

#include <filesystem>
#include <string>

#include "cli/terminal/output.h"
#include "thalia/options.h"

namespace thalia::cli {

/// Of a delta its header and metadata.
void print_original(Output& out, const std::filesystem::path& path, const ReadOptions& read,
                    bool as_json);
/// Regions, or the tensors of one; `region` is empty for all.
void list_original(Output& out, const std::filesystem::path& path, const std::string& region,
                   const ReadOptions& read, bool as_json);

}  // namespace thalia::cli
