// What a file says of itself, for people.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/terminal/output.h"
#include "cli/terminal/style.h"
#include "inspect/file_facts.h"

namespace thalia::cli {

/// A line of a description; one that goes on with what is above it has no label.
struct FactLine {
  std::string label;
  std::string text;
  std::optional<Style> style{};  ///< of the label, if it has one
};

/// "a checkpoint, 12 tensors in 2 regions, 1 connection".
std::string what_it_is(const inspect::DescribedFile& facts);
/// Parameters, dtypes, training, sizes, how it is stored: in the order in which people ask.
std::vector<FactLine> fact_lines(const inspect::DescribedFile& facts);

/// For people: what it is, how large, how far trained; then how it is stored. `all_metadata`: every
/// byte of them, else a few lines.
void print_facts(Output& out, const inspect::DescribedFile& facts, bool all_metadata);

}  // namespace thalia::cli
