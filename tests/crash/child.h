// Operations in processes of their own.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "crash/operation.h"

namespace thalia::crash {

using Environment = std::map<std::string, std::string>;

/// Runs `work` in a forked child, which takes a minute at most. @return the status of waitpid().
int in_child(const std::function<void()>& work);
/// Runs this program as `--perform NAME FOLDER`, with these variables.
int perform_in_child(const Operation& operation, const std::filesystem::path& folder,
                     const Environment& environment);
/// @throws std::runtime_error unless it is 0.
void check_ended(const Operation& operation, int status);

/// What a program does for `--perform`: the operation, told to the recorder if there is one.
void perform(const Operation& operation, const std::filesystem::path& folder);

/// Temporary folders of this process lie in memory from now on, if there is room for that, else
/// where they lay before. What is there is not on a disk, and is not written directly.
void use_memory(bool wanted);

/// A function of a library that was loaded first, or nullptr.
void* loaded_function(const char* name);

}  // namespace thalia::crash
