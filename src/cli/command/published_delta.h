// What changed, in the files of other programs: thalia delta --as.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal/session.h"
#include "thalia/state/delta.h"

namespace thalia::cli {

enum class DeltaFor : std::uint8_t { slime, trl, peft };

struct PublishedArguments {
  std::optional<DeltaFor> kind{};  ///< nullopt: a delta of the program's own
  std::string encoding{};
  std::string checksum{};
  bool leave_out = false;

  /// @param low_rank the flag. @param foreign options that deltas in files of others lack.
  void declare(CLI::App& app, CLI::Option* low_rank, const std::vector<CLI::Option*>& foreign);
};

/// @param low_rank nullopt: not asked for. @throws UsageError; as write_weight_delta() and
/// write_lora_adapter().
int run_published(const PublishedArguments& arguments, const std::string& base,
                  const std::string& input, const std::string& output,
                  const std::optional<LowRankOptions>& low_rank, const Session& session);

/// A row for each matrix; nothing of none.
void print_low_rank(Output& out, const std::vector<LowRankReport>& reports);
void add_low_rank(JsonWriter& json, const std::vector<LowRankReport>& reports);

}  // namespace thalia::cli
