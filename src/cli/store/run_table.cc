// A run for people: what is asked first comes first, and what is the rule is not said.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/print/print.h"
#include "cli/store/duration.h"
#include "cli/store/run_facts.h"
#include "cli/terminal/escape.h"

namespace thalia::cli {
namespace {

constexpr std::string_view kMargin = "  ";

std::string age_text(std::uint64_t since, std::uint64_t now) {
  // A clock that was set back, or that of another machine, may be ahead of this one.
  return since >= now ? "now" : duration_text(now - since);
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + escape(text);
  return all;
}

// "full", "delta on 1,000"; where the base is not in the folder, its name.
std::string kind_text(const CheckpointEntry& entry, const std::vector<CheckpointEntry>& all) {
  std::string text = "full";
  if (entry.is_delta()) {
    const auto base = std::ranges::find(all, entry.base, &CheckpointEntry::file);
    text = base == all.end() ? fmt::format("delta on {}, which is missing", escape(entry.base))
                             : fmt::format("delta on {}", grouped(base->step));
  }
  return entry.has_digest ? text : text + ", no digest";
}

void print_checkpoints(Output& out, const PhaseFacts& phase, std::uint64_t now) {
  using enum Table::Align;
  const std::vector<CheckpointEntry>& all = phase.checkpoints;
  const bool has_metric = phase.config.metric || std::ranges::any_of(all, [](auto& entry) {
                            return entry.metric.has_value();
                          });
  std::vector<Table::Column> columns{{""}, {"step", right}, {"saved"}, {"age", right}};
  if (has_metric) columns.push_back({"metric", right});
  columns.insert(columns.end(), {{"size", right}, {"kind"}, {"stays as"}});
  Table table(std::move(columns));
  for (const CheckpointEntry& entry : all) {
    std::string mark;
    if (phase.latest == entry.step) mark += ">";
    if (phase.best == entry.step) mark += "*";
    std::vector<std::string> cells{mark, grouped(entry.step), utc_time(entry.saved_at),
                                   age_text(entry.saved_at, now)};
    if (has_metric) cells.push_back(measure_text(entry.metric));
    cells.insert(cells.end(),
                 {human_bytes(entry.bytes), kind_text(entry, all), joined(entry.protected_by)});
    table.add_row(std::move(cells));
  }
  table.print(out);
}

void print_phase(Output& out, const PhaseFacts& phase, std::uint64_t now) {
  out.write(Style::heading, phase.config.name);
  if (phase.checkpoints.empty()) {
    out.write(": no checkpoint\n");
    return;
  }
  out.print(": {}, {}", counted(phase.checkpoints.size(), "checkpoint", "checkpoints"),
            human_bytes(phase.bytes()));
  if (const auto& metric = phase.config.metric) {
    out.print("; metric {}, the {} the better", escape(metric->name),
              metric->direction == Direction::max ? "higher" : "lower");
  }
  out.write("\n");
  print_checkpoints(out, phase, now);
}

void print_gates(Output& out, const std::vector<GateEntry>& gates, std::uint64_t now) {
  using enum Table::Align;
  out.write(Style::heading, "gates");
  out.write("\n");
  Table table(
      {{"name"}, {"of"}, {"step", right}, {"metric", right}, {"size", right}, {"age", right}});
  for (const GateEntry& gate : gates) {
    table.add_row({escape(gate.name), gate.phase.empty() ? "-" : escape(gate.phase),
                   gate.phase.empty() ? "-" : grouped(gate.step), measure_text(gate.metric),
                   human_bytes(gate.bytes),
                   gate.promoted_at == 0 ? "-" : age_text(gate.promoted_at, now)});
  }
  table.print(out, kMargin);
}

std::uint64_t bytes_of(const std::vector<PoolMember>& members) {
  std::uint64_t bytes = 0;
  for (const PoolMember& member : members) bytes += member.bytes;
  return bytes;
}

}  // namespace

void print_pool(Output& out, const PoolView& pool, std::uint64_t now) {
  using enum Table::Align;
  out.write(Style::heading, "pool");
  out.print(" of {}: {}, {}, {}\n", escape(pool.config.phase),
            counted(pool.versions.size(), "version", "versions"),
            counted(pool.anchors.size(), "anchor", "anchors"),
            human_bytes(bytes_of(pool.versions)));
  if (pool.versions.empty() && pool.anchors.empty()) return;
  Table table({{"version", right},
               {"of"},
               {"step", right},
               {"mu", right},
               {"sigma", right},
               {"rating", right},
               {"games", right},
               {"won", right},
               {"age", right}});
  const auto add = [&](const PoolMember& member) {
    table.add_row({member.is_anchor ? escape(member.name) : grouped(member.version),
                   escape(member.phase), grouped(member.step), measure_text(member.rating.mu),
                   measure_text(member.rating.sigma), measure_text(member.rating.conservative()),
                   count_or_dash(member.games_played),
                   member.games_played == 0 ? "-" : fmt::format("{:.0f} %", 100 * member.win_rate),
                   age_text(member.promoted_at, now)});
  };
  for (const PoolMember& member : pool.anchors) add(member);
  for (const PoolMember& member : pool.versions) add(member);
  table.print(out, kMargin);
}

void print_run(Output& out, const RunFacts& facts, std::uint64_t now) {
  bool is_first = true;
  for (const PhaseFacts& phase : facts.phases) {
    if (!is_first) out.write("\n");
    is_first = false;
    print_phase(out, phase, now);
  }
  if (!facts.gates.empty()) {
    out.write("\n");
    print_gates(out, facts.gates, now);
  }
  if (facts.pool) {
    out.write("\n");
    print_pool(out, *facts.pool, now);
  }
  out.print("\n{} in all; > the latest, * the best\n", human_bytes(facts.bytes()));
}

}  // namespace thalia::cli
