#include "demo/table.h"

#include <algorithm>
#include <cstdio>

#include "demo/print.h"

namespace demo {

void print_table(const std::vector<TableRow>& rows) {
  std::printf("\n  %-34s %15s %10s %13s\n", "", "bytes", "time", "speed");
  for (const TableRow& row : rows) {
    std::printf("  %-34s %15s %10s %13s\n", row.what.c_str(),
                row.bytes > 0 ? with_commas(static_cast<std::uint64_t>(row.bytes)).c_str() : "",
                row.seconds > 0 ? seconds_text(row.seconds).c_str() : "",
                row.bytes > 0 && row.seconds > 0 ? speed_text(row.bytes, row.seconds).c_str() : "");
  }
}

void print_next_steps(const std::vector<NextStep>& steps) {
  std::vector<std::string> lines;
  std::size_t width = 0;
  for (const NextStep& step : steps) {
    std::string line;
    for (const std::string& word : step.command)
      line += (line.empty() ? "" : " ") + shell_word(word);
    width = std::max(width, line.size());
    lines.push_back(std::move(line));
  }
  std::printf("\nTry next\n");
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::printf("  %-*s  # %s\n", static_cast<int>(width), lines[i].c_str(),
                steps[i].shows.c_str());
  }
}

}  // namespace demo
