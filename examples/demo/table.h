// The end of a tour: what was measured, and what to try next.
#pragma once

#include <string>
#include <vector>

namespace demo {

/// One line of the table. Zero: there is no such number.
struct TableRow {
  std::string what;
  double bytes = 0;
  double seconds = 0;
};

/// Bytes, seconds, and GiB/s if there are both.
void print_table(const std::vector<TableRow>& rows);

/// Commands for a shell in the present folder, each with a word on what it shows.
struct NextStep {
  std::vector<std::string> command;
  std::string shows;
};
void print_next_steps(const std::vector<NextStep>& steps);

}  // namespace demo
