// The differences between two checkpoints for a program to read.
#pragma once

#include <cstdint>
#include <string>

#include "cli/terminal/output.h"
#include "thalia/formats/convert.h"
#include "thalia/state/diff.h"

namespace thalia::cli {

/// What was compared, as docs/use/json.md has it.
struct DiffedFiles {
  std::string before;
  std::string after;
  FileFormat before_format = FileFormat::thalia;
  FileFormat after_format = FileFormat::thalia;
  bool metadata_compared = true;
  std::uint64_t ambiguous_names = 0;
};

/// One JSON object, always complete.
void print_diff_json(Output& out, const DiffedFiles& files, const Diff& diff);

}  // namespace thalia::cli
