// thalia store restore: a checkpoint leaves the run.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "cli/command/command.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/store/store_arguments.h"
#include "cli/store/store_json.h"

namespace thalia::cli {
namespace {

struct RestoreArguments {
  std::string run;
  std::string output;
  std::string phase;
  std::optional<std::uint64_t> step;
  std::optional<std::string> gate;
};

int run_restore(const RestoreArguments& arguments, const Session& session) {
  const thalia::Run run = thalia::Run::open(arguments.run, session.access());
  Warnings warnings(session);
  auto options = session.options<RestoreOptions>();
  options.load.step = arguments.step;
  options.load.on_warning = warnings.callback();
  options.gate = arguments.gate;
  const std::string phase =
      arguments.gate ? run.config().phases.front().name : chosen_phase(run, arguments.phase);
  const RestoreResult result = restore(run, phase, arguments.output, options);
  const CheckpointEntry& entry = result.entry;
  if (!session.common.json) {
    const std::string from = arguments.gate
                                 ? "gate " + *arguments.gate
                                 : fmt::format("step {} of {}", grouped(entry.step), phase);
    session.out.print("{}: {}, {}{}\n", escape(arguments.output), escape(from),
                      human_bytes(result.bytes),
                      result.is_cloned ? ", which shares its blocks with the original" : "");
    return kDone;
  }
  print_object(session.out, "thalia.store.restore.1", [&](JsonWriter& json) {
    add_files(json, result.source.string(), arguments.output);
    json.key("checkpoint");
    add_checkpoint(json, entry);
    json.member("output_bytes", result.bytes).member("cloned", result.is_cloned);
    add_attempts(json, result.attempts);
    warnings.add_to(json);
  });
  return kDone;
}

}  // namespace

Run declare_store_restore(CLI::App& app) {
  app.description(
      "Writes a checkpoint to a file outside of the run, with its digest: the same bytes; of a "
      "delta the state that it stands for, as a full file. It is checked first, as 'store latest' "
      "does, and where the latest is damaged it is the next older one.");
  const auto arguments = std::make_shared<RestoreArguments>();
  add_run(app, arguments->run);
  offer(app.add_option("OUT", arguments->output, "The file to write")->required(), kFile);
  CLI::Option* const phase =
      add_phase(app, arguments->phase, "The phase; default: the last one with a checkpoint");
  CLI::Option* const step =
      add_step(app, arguments->step, "Takes the checkpoint of this step, and no other");
  add_gate(app, arguments->gate, "This gate instead")->excludes(phase)->excludes(step);
  return [arguments](const Session& session) { return run_restore(*arguments, session); };
}

}  // namespace thalia::cli
