// The files that the operations write, and what is found in a file.
#pragma once

#include <filesystem>
#include <string>

#include "support/sample.h"

namespace thalia::crash {

/// The state of a network after so many steps; others for each.
test::Sample network(unsigned step);
/// With a matrix that takes several direct writes.
test::Sample large_network(unsigned step);

/// Everything that a file says, as a hash, read by a reader that was opened with defaults; kAbsent
/// if there is no file. @throws thalia::Error if it is not valid; std::logic_error where
/// verify() finds fault with what the reader takes.
std::string content_of(const std::filesystem::path& path);
/// The same after recover() where the file as it is is not valid.
std::string recovered_content_of(const std::filesystem::path& path);
/// How often that has called recover() in this process.
std::size_t recoveries();

}  // namespace thalia::crash
