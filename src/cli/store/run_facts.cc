#include "cli/store/run_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/print/json_result.h"
#include "cli/store/store_json.h"

namespace thalia::cli {
namespace {

std::uint64_t sum_of_bytes(const auto& entries) noexcept {
  std::uint64_t bytes = 0;
  for (const auto& entry : entries) bytes += entry.bytes;
  return bytes;
}

std::optional<std::uint64_t> step_of(const std::vector<CheckpointEntry>& entries,
                                     const char* protected_as) {
  for (const CheckpointEntry& entry : entries)
    if (std::ranges::find(entry.protected_by, protected_as) != entry.protected_by.end())
      return entry.step;
  return std::nullopt;
}

PhaseFacts phase_facts(const thalia::Run& run, const PhaseConfig& config) {
  PhaseFacts facts{.config = config, .checkpoints = run.list(config.name)};
  facts.latest = step_of(facts.checkpoints, "latest");
  // As Run::latest(), of this one listing.
  if (!facts.latest && !facts.checkpoints.empty()) facts.latest = facts.checkpoints.back().step;
  facts.best = step_of(facts.checkpoints, "best");
  return facts;
}

}  // namespace

std::uint64_t PhaseFacts::bytes() const noexcept {
  return sum_of_bytes(checkpoints);
}

std::uint64_t RunFacts::bytes() const noexcept {
  std::uint64_t bytes = sum_of_bytes(gates);
  for (const PhaseFacts& phase : phases) bytes += phase.bytes();
  if (pool) bytes += sum_of_bytes(pool->versions);
  return bytes;
}

RunFacts run_facts_of(const thalia::Run& run, const std::string& phase) {
  const RunConfig& config = run.config();
  RunFacts facts{.folder = run.folder(), .extension = config.extension};
  if (phase.empty()) {
    for (const PhaseConfig& one : config.phases) facts.phases.push_back(phase_facts(run, one));
  } else {
    facts.phases.push_back(phase_facts(run, config.phase(phase)));
  }
  facts.current_phase = run.current_phase();
  facts.gates = run.gates();
  if (!phase.empty())
    std::erase_if(facts.gates, [&](const GateEntry& gate) { return gate.phase != phase; });
  if (config.pool && (phase.empty() || config.pool->phase == phase)) facts.pool = read_pool(run);
  return facts;
}

void add_pool(JsonWriter& json, const PoolView& pool) {
  json.begin_object().member("phase", pool.config.phase).member("folder", pool.config.folder);
  json.member("next_version", pool.next_version).key("versions").begin_array();
  for (const PoolMember& member : pool.versions) add_pool_member(json, member);
  json.end_array().key("anchors").begin_array();
  for (const PoolMember& member : pool.anchors) add_pool_member(json, member);
  json.end_array().end_object();
}

void add_run_facts(JsonWriter& json, const RunFacts& facts) {
  json.begin_object().member("path", as_utf8(facts.folder.string()));
  json.member("extension", facts.extension);
  add_known(json, "current_phase", facts.current_phase);
  json.member("total_bytes", facts.bytes()).key("phases").begin_array();
  for (const PhaseFacts& phase : facts.phases) {
    json.begin_object().member("name", phase.config.name).key("metric");
    if (const auto& metric = phase.config.metric) {
      json.begin_object().member("name", as_utf8(metric->name));
      json.member("direction", metric->direction == Direction::max ? "max" : "min").end_object();
    } else {
      json.null();
    }
    json.member("gate", phase.config.gate_name());
    add_known(json, "latest", phase.latest);
    add_known(json, "best", phase.best);
    json.member("total_bytes", phase.bytes()).key("checkpoints").begin_array();
    for (const CheckpointEntry& entry : phase.checkpoints) add_checkpoint(json, entry);
    json.end_array().end_object();
  }
  json.end_array().key("gates").begin_array();
  for (const GateEntry& gate : facts.gates) add_gate(json, gate);
  json.end_array().key("pool");
  facts.pool ? add_pool(json, *facts.pool) : static_cast<void>(json.null());
  json.end_object();
}

std::uint64_t seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

std::string measure_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.6g}", *value) : "-";
}

}  // namespace thalia::cli
