// A file named on the command line to print into.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "cli/terminal/option.h"
#include "cli/terminal/session.h"

namespace thalia::cli {

/// Declares -o,--output, with `value` as what help shows in its place.
CLI::Option* add_output(CLI::App& app, const char* value, std::string& path);

/// Checks a command line that is parsed. @throws UsageError if OUT, or what -o names, is one of the
/// files that it reads, or one that is read for these, as the base of a delta: anybody who wants
/// that has mistyped a name.
void refuse_input_as_output(const CLI::App& app, const Session& session);

/// Runs print(out) with an output that appears at the path as a whole when print is done, and
/// leaves nothing behind otherwise. If something other than a regular file is at the path
/// (/dev/null, a pipe), that is written to. @throws IoError naming the path; UsageError (exists);
/// CancelledError.
void print_into(const std::filesystem::path& path, const Session& session,
                const std::function<void(Output& out)>& print);

}  // namespace thalia::cli
