// What a run holds, as it is listed: for people and as JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal/output.h"
#include "json/writer.h"
#include "thalia/store/pool.h"
#include "thalia/store/run.h"

namespace thalia::cli {

struct PhaseFacts {
  PhaseConfig config;
  std::vector<CheckpointEntry> checkpoints;
  std::optional<std::uint64_t> latest{};  ///< its step
  std::optional<std::uint64_t> best{};    ///< the same

  std::uint64_t bytes() const noexcept;
};

struct RunFacts {
  std::filesystem::path folder;
  std::string extension;
  std::optional<std::string> current_phase{};
  std::vector<PhaseFacts> phases{};
  std::vector<GateEntry> gates{};
  std::optional<PoolView> pool{};

  std::uint64_t bytes() const noexcept;  ///< of all checkpoints, gates and versions of the pool
};

/// No file is opened but the texts that lie beside them. @param phase that one alone, with its
/// gates and its pool; empty: all.
RunFacts run_facts_of(const thalia::Run& run, const std::string& phase);

/// Tables of the checkpoints of each phase, of gates and of the pool. @param now for ages, in
/// seconds since 1970.
void print_run(Output& out, const RunFacts& facts, std::uint64_t now);
/// The versions of the pool and its anchors.
void print_pool(Output& out, const PoolView& pool, std::uint64_t now);

/// An object, as docs/use/json.md has it.
void add_run_facts(JsonWriter& json, const RunFacts& facts);
void add_pool(JsonWriter& json, const PoolView& pool);

std::uint64_t seconds_since_1970();
/// A metric, or another measure that people compare: six digits; "-" if there is none.
std::string measure_text(const std::optional<double>& value);

}  // namespace thalia::cli
