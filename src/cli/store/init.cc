// thalia store init: the folder of a run that is about to begin.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command/command.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/store/retention_arguments.h"
#include "cli/store/run_facts.h"
#include "cli/store/store_arguments.h"
#include "thalia/error.h"

namespace thalia::cli {
namespace {

enum class Preset { none, hydra };
constexpr std::array kPresets{Choice<Preset>{"hydra", Preset::hydra}};
constexpr std::array kConfigFormats{Choice<ConfigFormat>{"toml", ConfigFormat::toml},
                                    Choice<ConfigFormat>{"json", ConfigFormat::json}};
constexpr std::string_view kOnlyPhase = "main";

struct InitArguments {
  std::string folder;
  bool is_new = false;
  Preset preset = Preset::none;
  std::vector<std::string> phases;
  std::optional<Metric> metric;
  std::string extension;
  std::optional<std::uint64_t> seed;
  ConfigFormat format = ConfigFormat::toml;
  RetentionArguments retention;
};

// "validation_loss:min". The name may have colons itself.
Metric parse_metric(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const std::string direction = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (colon == 0 || (direction != "min" && direction != "max")) {
    throw UsageError(ErrorCode::bad_argument, {},
                     {.field = "--metric",
                      .value = fmt::format("'{}'", escape(text)),
                      .bound = "NAME:min or NAME:max"});
  }
  return {text.substr(0, colon), direction == "max" ? Direction::max : Direction::min};
}

RunConfig config_of(const InitArguments& arguments) {
  RunConfig config;
  if (arguments.preset == Preset::hydra) {
    config = hydra_config();
  } else if (arguments.phases.empty()) {
    config.phases.push_back({.name = std::string(kOnlyPhase)});
  }
  for (const std::string& name : arguments.phases) config.phases.push_back({.name = name});
  if (!arguments.extension.empty()) config.extension = arguments.extension;
  for (PhaseConfig& phase : config.phases) {
    if (arguments.metric) phase.metric = arguments.metric;
    phase.retention = arguments.retention.apply(phase.retention);
  }
  return config;
}

std::filesystem::path folder_of_run(const InitArguments& arguments) {
  std::filesystem::path folder = arguments.folder;
  if (!arguments.is_new) return folder;
  const std::uint64_t seed = arguments.seed.value_or(std::random_device()());
  return folder / run_id(seconds_since_1970(), seed);
}

// --force would replace a file; a run is never replaced.
thalia::Run make_run(const std::filesystem::path& folder, const InitArguments& arguments) {
  try {
    return create_run(folder, config_of(arguments), arguments.format);
  } catch (const UsageError& error) {
    if (error.code() != ErrorCode::exists) throw;
    throw UsageError(ErrorCode::wrong_state, "there is a run already", {.path = folder.string()});
  }
}

int run_init(const InitArguments& arguments, const Session& session) {
  const thalia::Run run = make_run(folder_of_run(arguments), arguments);
  const std::string path = run.folder().string();
  std::vector<std::string> names;
  for (const PhaseConfig& phase : run.config().phases) names.push_back(phase.name);
  if (session.common.json) {
    print_object(session.out, "thalia.store.init.1", [&](JsonWriter& json) {
      json.member("path", as_utf8(path)).member("extension", run.config().extension);
      add_list(json, "phases", names);
    });
  } else if (arguments.is_new) {
    // Nothing else, as a script wants to know the name.
    session.out.print("{}\n", escape(path));
  } else {
    std::string listed;
    for (const std::string& name : names) listed += (listed.empty() ? "" : ", ") + name;
    session.out.print("{}: a run with {}: {}\n", escape(path),
                      counted(names.size(), "phase", "phases"), listed);
  }
  return kDone;
}

}  // namespace

Run declare_store_init(CLI::App& app) {
  app.description(
      "Makes the folder of a run: run.toml, which says how it is kept and may be edited, and the "
      "folders of its phases. A run that is there stays as it is, and is an error. With --new, RUN "
      "is a folder of runs: the run gets the time of its start and its seed as its name, and the "
      "path is printed, alone.");
  app.footer(
      "Examples:\n  thalia store init runs/first --phases pretrain,finetune --metric loss:min\n"
      "  run=$(thalia store init runs --new --seed 7 --preset hydra)");
  const auto arguments = std::make_shared<InitArguments>();
  add_run(app, arguments->folder, "The folder to make");
  app.add_flag("--new", arguments->is_new, "Make it in this folder, named by time and seed");
  CLI::Option* const preset =
      add_choice(app, "--preset NAME", arguments->preset, kPresets,
                 "hydra: three phases with gates, a pool, and keys that every checkpoint has");
  add_option(app, "--phases A,B", arguments->phases,
             fmt::format("Phases in their order; default one, {}", kOnlyPhase))
      ->delimiter(',')
      ->excludes(preset);
  const auto set_metric = [arguments](const std::string& text) {
    arguments->metric = parse_metric(text);
  };
  add_option(app, "--metric NAME:min|max", set_metric,
             "What the best checkpoint of each phase goes by, and which of two values is better");
  add_option(
      app, "--extension EXT", arguments->extension,
      "Extension of the checkpoints; default thalia. Files of other kinds are kept as they are");
  add_master_seed(app, arguments->seed,
                  "With --new: the run's seed, whose last digits its name has");
  add_choice(app, "--format FORMAT", arguments->format, kConfigFormats,
             "Format of the configuration: toml, the default, or json");
  arguments->retention.declare(app);
  return [arguments](const Session& session) { return run_init(*arguments, session); };
}

}  // namespace thalia::cli
