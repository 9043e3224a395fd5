// What became of the files of a chain that was turned.
#pragma once

#include "cli/print/print.h"
#include "cli/terminal/option.h"
#include "json/writer.h"
#include "thalia/state/delta.h"

namespace thalia::cli {

/// Declares --max-depth.
inline void add_max_depth(CLI::App& app, unsigned& depth) {
  add_option(app, "--max-depth N", depth, "A file that would be deeper is full; default 64");
}

/// Declares --plain.
inline CLI::Option* add_plain(CLI::App& app, bool& plain) {
  return app.add_flag("--plain", plain,
                      "No packed deltas: every byte where the format of files has it");
}

/// A table of the files, and their bytes together.
void print_rebased(Output& out, const RebaseResult& result);
/// The members of an object that is begun.
void add_rebased(JsonWriter& json, const RebaseResult& result);

}  // namespace thalia::cli
