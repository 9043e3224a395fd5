// thalia store rebase: the newest checkpoint of a phase full, the older ones deltas of it.
#include <memory>
#include <string>

#include "cli/command/command.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/print/rebased.h"
#include "cli/store/store_arguments.h"

namespace thalia::cli {
namespace {

struct StoreRebaseArguments {
  std::string run;
  std::string phase;
  StoreRebaseOptions options;
};

int run_store_rebase(const StoreRebaseArguments& arguments, const Session& session) {
  Warnings warnings(session);
  RunWriter writer = writer_of(arguments.run, session, warnings);
  const std::string phase = chosen_phase(writer.run(), arguments.phase);
  const RebaseResult result = writer.rebase(phase, arguments.options);
  if (!session.common.json) {
    print_rebased(session.out, result);
    return kDone;
  }
  print_object(session.out, "thalia.store.rebase.1", [&](JsonWriter& json) {
    json.member("path", as_utf8(arguments.run)).member("phase", phase);
    add_rebased(json, result);
    warnings.add_to(json);
  });
  return kDone;
}

}  // namespace

Run declare_store_rebase(CLI::App& app) {
  app.description(
      "Turns the deltas of a phase: its newest checkpoint becomes a full file, each older one an "
      "exact delta of the next newer. Steps, metrics, 'latest' and 'best' stay, and checkpoints "
      "that the run left behind keep their bases. At each moment every checkpoint loads; what "
      "ended early can be begun again.");
  const auto arguments = std::make_shared<StoreRebaseArguments>();
  add_run(app, arguments->run);
  add_phase(app, arguments->phase, "The phase; default: the last one with a checkpoint");
  add_max_depth(app, arguments->options.max_depth);
  return [arguments](const Session& session) { return run_store_rebase(*arguments, session); };
}

}  // namespace thalia::cli
