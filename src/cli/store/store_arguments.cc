#include "cli/store/store_arguments.h"

#include <fmt/format.h>

#include <utility>

#include "cli/print/complaint.h"
#include "cli/print/json_result.h"
#include "thalia/error.h"

namespace thalia::cli {

CLI::Option* add_run(CLI::App& app, std::string& run, std::string help) {
  return offer(app.add_option("RUN", run, std::move(help))->required(), kFolder);
}

CLI::Option* add_phase(CLI::App& app, std::string& phase, std::string help) {
  return offer(add_option(app, "--phase P", phase, std::move(help)), kPhase);
}

CLI::Option* add_step(CLI::App& app, std::optional<std::uint64_t>& step, std::string help) {
  return add_option(app, "--step N", step, std::move(help));
}

CLI::Option* add_gate(CLI::App& app, std::optional<std::string>& gate, std::string help) {
  return offer(add_option(app, "--gate NAME", gate, std::move(help)), kGate);
}

CLI::Option* add_interval(CLI::App& app, double& seconds, std::string help) {
  return add_option(app, "--interval SECONDS", seconds, std::move(help));
}

void check_interval(double seconds) {
  constexpr double kLeast = 0.01, kMost = 86400;
  if (seconds >= kLeast && seconds <= kMost) return;
  throw UsageError(ErrorCode::bad_argument, {},
                   {.field = "--interval",
                    .value = fmt::format("{}", seconds),
                    .bound = fmt::format("{} to {} seconds", kLeast, kMost)});
}

CLI::Option* add_quick(CLI::App& app, bool& quick) {
  return app.add_flag("--quick", quick, "Names, links and texts only: no checkpoint is read");
}

CLI::Option* add_dry_run(CLI::App& app, bool& dry_run) {
  return app.add_flag("--dry-run", dry_run, "Say what would be done, and change nothing");
}

void add_rating(CLI::App& app, std::optional<double>& mu, std::optional<double>& sigma) {
  add_option(app, "--mu X", mu, "The estimate of the model's skill, as OpenSkill has it");
  add_option(app, "--sigma X", sigma, "How uncertain that is");
}

CLI::Option* add_master_seed(CLI::App& app, std::optional<std::uint64_t>& seed, std::string help) {
  return add_option(app, "--seed S", seed, std::move(help));
}

std::string chosen_phase(const thalia::Run& run, const std::string& named) {
  if (!named.empty()) return run.config().phase(named).name;
  if (const auto current = run.current_phase()) return *current;
  const std::vector<PhaseConfig>& phases = run.config().phases;
  if (phases.size() == 1) return phases.front().name;
  std::string names;
  for (const PhaseConfig& phase : phases) names += (names.empty() ? "" : ", ") + phase.name;
  throw UsageError(ErrorCode::not_found, "no phase has a checkpoint yet",
                   {.path = run.folder().string(), .field = "--phase", .bound = "one of " + names});
}

std::vector<std::string> chosen_phases(const thalia::Run& run, const std::string& named) {
  if (!named.empty()) return {run.config().phase(named).name};
  std::vector<std::string> names;
  for (const PhaseConfig& phase : run.config().phases) names.push_back(phase.name);
  return names;
}

std::function<void(const std::string&)> Warnings::callback() {
  return [this](const std::string& text) {
    as_json_ ? texts_.push_back(text) : static_cast<void>(complain("warning: " + text, 0));
  };
}

void Warnings::add_to(JsonWriter& json) const {
  add_list(json, "warnings", texts_);
}

RunWriter writer_of(const std::string& run, const Session& session, Warnings& warnings) {
  auto options = session.options<RunWriterOptions>();
  options.on_warning = warnings.callback();
  return RunWriter(run, std::move(options));
}

}  // namespace thalia::cli
