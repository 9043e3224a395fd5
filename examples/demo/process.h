// Other processes: the tour's steps, each started anew so that it has nothing but the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace demo {

/// A step of the tour did not end well. It has said itself what went wrong.
class StepFailed : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Shows the command as a shell would take it, runs it, and waits. @throws StepFailed unless it
/// ends with status 0.
/// @return seconds it took.
double run_command(const std::vector<std::string>& words);

/// The path as seen from the present folder, if that is shorter.
std::filesystem::path shorter_path(const std::filesystem::path& path);

/// This program, and the program `thalia` built beside it (else the one in PATH), as a caller in
/// the present folder would name them.
std::string this_program();
std::string thalia_program(const std::filesystem::path& wanted);

/// The most memory that this process has had in use.
std::uint64_t peak_memory_bytes();

/// Makes the folder if it is missing. @throws std::runtime_error if it has no room for
/// `bytes`.
void prepare_folder(const std::filesystem::path& folder, std::uint64_t bytes);

}  // namespace demo
