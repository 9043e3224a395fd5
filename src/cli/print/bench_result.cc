// A ratio is taken within each round, floor by row, and then the median of the rounds: so a disk
// that changes its speed between rounds does not change the ratio.
#include "cli/print/bench_result.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/print/print.h"
#include "cli/terminal/escape.h"
#include "json/writer.h"
#include "measure/spread.h"

namespace thalia::cli {
namespace {

using measure::Spread;
using measure::spread_of;

Spread rates(const BenchReport& report, const BenchRow& row) {
  std::vector<double> values;
  for (const double seconds : row.seconds)
    values.push_back(static_cast<double>(report.bytes) / seconds / (1 << 30));
  return spread_of(std::move(values));
}

// In each round, the floor's time divided by the row's.
Spread ratios(const BenchReport& report, const BenchRow& row) {
  const auto floor = std::find_if(report.rows.begin(), report.rows.end(),
                                  [&](const BenchRow& other) { return other.name == row.floor; });
  std::vector<double> values;
  for (std::size_t i = 0; i < row.seconds.size(); ++i)
    values.push_back(floor->seconds[i] / row.seconds[i]);
  return spread_of(std::move(values));
}

std::string range(const Spread& spread) {
  return fmt::format("{:.2f} to {:.2f}", spread.least, spread.most);
}

void add_json(JsonWriter& json, std::string_view name, const Spread& spread) {
  json.key(name).begin_object().member("median", spread.median);
  json.member("min", spread.least).member("max", spread.most).end_object();
}

}  // namespace

void print_text(Output& out, const BenchReport& report) {
  out.print("{} of f32 weights in {}, {}, {}; medians and ranges\n\n", human_bytes(report.bytes),
            escape(report.folder), counted(report.rounds, "round", "rounds"),
            counted(report.threads, "thread", "threads"));
  using Align = Table::Align;
  Table table({{"", Align::left},
               {"GiB/s", Align::right},
               {"range", Align::right},
               {"ratio", Align::right},
               {"range", Align::right},
               {"to"}});
  for (const BenchRow& row : report.rows) {
    if (row.seconds.empty()) {
      table.add_row({row.name, "-"});
      continue;
    }
    const Spread rate = rates(report, row);
    std::vector<std::string> cells{row.name, fmt::format("{:.2f}", rate.median), range(rate)};
    if (!row.floor.empty()) {
      const Spread ratio = ratios(report, row);
      cells.insert(cells.end(), {fmt::format("{:.2f}", ratio.median), range(ratio), row.floor});
    }
    table.add_row(std::move(cells));
  }
  table.print(out);
  bool first = true;
  for (const BenchRow& row : report.rows) {
    if (row.note.empty()) continue;
    out.print("{}{}: {}\n", first ? "\n" : "", row.name, escape(row.note));
    first = false;
  }
}

std::string as_json(const BenchReport& report) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("schema", "thalia.bench.1");
  json.member("folder", as_utf8(report.folder)).member("bytes", report.bytes);
  json.member("rounds", report.rounds).member("threads", report.threads);
  json.key("results").begin_array();
  for (const BenchRow& row : report.rows) {
    json.begin_object().member("name", row.name).member("note", as_utf8(row.note));
    json.key("seconds").begin_array();
    for (const double seconds : row.seconds) json.value(seconds);
    json.end_array();
    if (!row.seconds.empty()) {
      add_json(json, "gib_per_second", rates(report, row));
      if (!row.floor.empty()) {
        json.member("floor", row.floor);
        add_json(json, "ratio", ratios(report, row));
      }
    }
    json.end_object();
  }
  json.end_array().end_object();
  return text;
}

}  // namespace thalia::cli
