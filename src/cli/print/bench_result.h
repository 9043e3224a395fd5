// The figures of `thalia bench`: seconds of each run, and what is made of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/terminal/output.h"

namespace thalia::cli {

/// One kind of run: something done once a round to the same bytes.
struct BenchRow {
  std::string name;
  std::string floor;  ///< name of the row that the machine can do at most; empty for a floor itself
  std::string note;   ///< what to know about it, or why there are no runs
  std::vector<double> seconds{};  ///< a round each; as many as the floor's, or none
};

struct BenchReport {
  std::string folder;
  std::uint64_t bytes = 0;  ///< that every run of every row handles
  unsigned rounds = 0;
  unsigned threads = 0;
  std::vector<BenchRow> rows;
};

void print_text(Output& out, const BenchReport& report);
std::string as_json(const BenchReport& report);

}  // namespace thalia::cli
