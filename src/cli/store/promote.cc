// thalia store promote: a checkpoint becomes a gate.
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

struct PromoteArguments {
  std::string run;
  std::string phase;
  std::optional<std::uint64_t> step;
  std::optional<std::string> gate;
};

int run_promote(const PromoteArguments& arguments, const Session& session) {
  Warnings warnings(session);
  RunWriter writer = writer_of(arguments.run, session, warnings);
  const std::string phase = chosen_phase(writer.run(), arguments.phase);
  const PromoteResult result = writer.promote(
      phase, {.step = arguments.step, .gate = arguments.gate, .force = session.common.replace});
  const GateEntry& gate = result.gate;
  const std::string path = writer.run().gate_path(gate.name).string();
  if (!session.common.json) {
    session.out.print("{}: step {} of {}, {}{}\n", escape(path), grouped(gate.step), gate.phase,
                      human_bytes(gate.bytes),
                      result.is_cloned ? ", which shares its blocks with the original" : "");
    return kDone;
  }
  print_object(session.out, "thalia.store.promote.1", [&](JsonWriter& json) {
    json.member("path", as_utf8(path)).key("gate");
    add_gate(json, gate);
    json.member("cloned", result.is_cloned);
    warnings.add_to(json);
  });
  return kDone;
}

}  // namespace

Run declare_store_promote(CLI::App& app) {
  app.description(
      "Copies the best checkpoint of a phase, or where no metric tells one the latest, to the "
      "run's "
      "gates, with a digest of its own; of a delta its state as a full file. A gate is never "
      "pruned, and there is nothing that stands in for one. It is held against its digest while it "
      "is copied.");
  const auto arguments = std::make_shared<PromoteArguments>();
  add_run(app, arguments->run);
  add_phase(app, arguments->phase, "The phase; default: the last one with a checkpoint");
  add_step(app, arguments->step, "Takes the checkpoint of this step");
  add_gate(app, arguments->gate, "Under this name; default that of the phase's configuration");
  return [arguments](const Session& session) { return run_promote(*arguments, session); };
}

}  // namespace thalia::cli
