// Files of a network that grows, for make_files.
#pragma once

#include <filesystem>

#include "thalia/options.h"

/// grown.thalia, later.thalia (the same network further on), other.thalia (another one) and
/// odd_history.thalia.
void write_grown_files(const std::filesystem::path& folder, const thalia::SaveOptions& options);
