// thalia store latest: for scripts that go on where a run ended.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "cli/command/command.h"
#include "cli/print/complaint.h"
#include "cli/print/json_result.h"
#include "cli/store/store_arguments.h"
#include "cli/store/store_json.h"
#include "thalia/error.h"

namespace thalia::cli {
namespace {

struct LatestArguments {
  std::string run;
  std::string phase;
  bool best = false;
};

struct FoundCheckpoint {
  CheckpointEntry entry;
  std::filesystem::path path;
  std::vector<LoadAttempt> attempts;
};

// Loaded and let go of: anybody who loads it next finds it in the page cache.
FoundCheckpoint find_checkpoint(const thalia::Run& run, const std::string& phase,
                                const LoadOptions& options) {
  const auto take = [](auto loaded) {
    return FoundCheckpoint{std::move(loaded.entry), std::move(loaded.path),
                           std::move(loaded.attempts)};
  };
  return run.config().is_thalia() ? take(run.load(phase, options))
                                  : take(run.load_bytes(phase, options));
}

int run_latest(const LatestArguments& arguments, const Session& session) {
  const thalia::Run run = thalia::Run::open(arguments.run, session.access());
  const std::string phase = chosen_phase(run, arguments.phase);
  Warnings warnings(session);
  auto options = session.options<LoadOptions>();
  options.on_warning = warnings.callback();
  if (arguments.best) {
    const auto best = run.best(phase);
    if (!best)
      throw UsageError(ErrorCode::not_found, "the phase has no best checkpoint",
                       {.path = run.phase_folder(phase).string(), .field = "--best"});
    options.step = best->step;
  }
  try {
    const FoundCheckpoint found = find_checkpoint(run, phase, options);
    if (!session.common.json) {
      session.out.print("{}\n", escape(found.path.string()));
      return kDone;
    }
    print_object(session.out, "thalia.store.latest.1", [&](JsonWriter& json) {
      json.member("path", as_utf8(found.path.string())).key("checkpoint");
      add_checkpoint(json, found.entry);
      add_attempts(json, found.attempts);
      warnings.add_to(json);
    });
    return kDone;
  } catch (const NoValidCheckpointError& error) {
    if (session.common.json) throw;
    // Its message lists every attempt, which the warnings have reported on lines of their own.
    return complain(fmt::format("{}: no checkpoint of {} can be loaded, of {} that were tried",
                                run.folder().string(), phase, error.attempts().size()),
                    kUnreadable);
  }
}

}  // namespace

Run declare_store_latest(CLI::App& app) {
  app.description(
      "Prints the path of the latest checkpoint of a phase. It is read and checked against its "
      "digest first; if it is damaged, a warning says so, and it is the next older one, and so "
      "on. Exit status 3 where none can be loaded.");
  app.footer("Example:\n  thalia info \"$(thalia store latest runs/first)\"");
  const auto arguments = std::make_shared<LatestArguments>();
  add_run(app, arguments->run);
  add_phase(app, arguments->phase, "The phase; default: the last one with a checkpoint");
  app.add_flag("--best", arguments->best, "The best one instead, and no other");
  return [arguments](const Session& session) { return run_latest(*arguments, session); };
}

}  // namespace thalia::cli
