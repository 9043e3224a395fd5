// What the commands of the group `store` take alike.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal/option.h"
#include "cli/terminal/session.h"
#include "json/writer.h"
#include "thalia/store/run.h"
#include "thalia/store/writer.h"

namespace thalia::cli {

/// An argument that names the folder of a run, and has to be there.
CLI::Option* add_run(CLI::App& app, std::string& run, std::string help = "The folder of the run");
CLI::Option* add_phase(CLI::App& app, std::string& phase, std::string help);
CLI::Option* add_step(CLI::App& app, std::optional<std::uint64_t>& step, std::string help);
CLI::Option* add_gate(CLI::App& app, std::optional<std::string>& gate, std::string help);
CLI::Option* add_interval(CLI::App& app, double& seconds, std::string help);
/// @throws UsageError (bad_argument) for one that is too short or too long.
void check_interval(double seconds);
CLI::Option* add_quick(CLI::App& app, bool& quick);
CLI::Option* add_dry_run(CLI::App& app, bool& dry_run);
/// For a model that plays: --mu and --sigma.
void add_rating(CLI::App& app, std::optional<double>& mu, std::optional<double>& sigma);
CLI::Option* add_master_seed(CLI::App& app, std::optional<std::uint64_t>& seed, std::string help);

/// The phase that was named; else the run's current one, or its only one. @throws UsageError
/// (not_found) for an unknown phase, or if it has to be named.
std::string chosen_phase(const thalia::Run& run, const std::string& named);
/// The one that was named, or all.
std::vector<std::string> chosen_phases(const thalia::Run& run, const std::string& named);

/// The sentences that the library says on its way: a line each on standard error, or with --json a
/// member of the result. Externally synchronised.
class Warnings {
 public:
  explicit Warnings(const Session& session) : as_json_(session.common.json) {}
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;

  /// Must not be called once this is gone.
  std::function<void(const std::string&)> callback();
  void add_to(JsonWriter& json) const;

 private:
  const bool as_json_;
  std::vector<std::string> texts_;
};

/// Takes the run's lock, waiting for it with --wait.
RunWriter writer_of(const std::string& run, const Session& session, Warnings& warnings);

}  // namespace thalia::cli
