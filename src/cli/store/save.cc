// thalia store save: a file becomes a checkpoint of a run, by every step of a save.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command/command.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/store/store_arguments.h"
#include "cli/store/store_json.h"

namespace thalia::cli {
namespace {

struct StoreSaveArguments {
  std::string run;
  std::string file;
  std::string phase;
  std::optional<std::uint64_t> step;
  std::optional<double> metric;
  std::vector<std::string> keys;
};

void print_stored(Output& out, const StoredCheckpoint& stored) {
  const CheckpointEntry& entry = stored.entry;
  out.print("{}: {}, {} in {:.2f} s{}\n", escape(stored.path.string()),
            entry.is_delta() ? fmt::format("a delta on {}", escape(entry.base)) : "a full file",
            human_bytes(entry.bytes), stored.seconds,
            stored.is_best ? fmt::format("; the best of {}", entry.phase) : "");
  for (const std::string& file : stored.removed) out.print("removed: {}\n", escape(file));
}

int run_store_save(const StoreSaveArguments& arguments, const Session& session) {
  Warnings warnings(session);
  RunWriter writer = writer_of(arguments.run, session, warnings);
  const std::string phase = chosen_phase(writer.run(), arguments.phase);
  const StoredCheckpoint stored = writer.save_file(
      phase, *arguments.step, arguments.file,
      {.metric = arguments.metric, .replace = session.common.replace, .keys = arguments.keys});
  if (!session.common.json) {
    print_stored(session.out, stored);
    return kDone;
  }
  print_object(session.out, "thalia.store.save.1", [&](JsonWriter& json) {
    json.member("path", as_utf8(stored.path.string())).key("checkpoint");
    add_checkpoint(json, stored.entry);
    json.member("best", stored.is_best);
    add_list(json, "removed", stored.removed);
    json.member("seconds", stored.seconds).member("sync_seconds", stored.sync_seconds);
    warnings.add_to(json);
  });
  return kDone;
}

}  // namespace

Run declare_store_save(CLI::App& app) {
  app.description(
      "Saves a copy of a file as the checkpoint of a step: whole or not at all, with its digest, "
      "as "
      "a full file or as a delta on the newest checkpoint, as the run's configuration says. Then "
      "the latest and the best lead to what they are now, and what retention does not keep goes. "
      "In a run of .thalia files FILE has to be one, and sound.");
  const auto arguments = std::make_shared<StoreSaveArguments>();
  add_run(app, arguments->run);
  add_model(app, "FILE", arguments->file, "The file to save");
  add_phase(app, arguments->phase,
            "Its phase; default the last one that has a checkpoint, or the only one");
  add_step(app, arguments->step, "Its training step")->required();
  add_option(app, "--metric M", arguments->metric, "Its value of the phase's metric");
  add_option(app, "--key KEY", arguments->keys,
             "A key that its record has, of a file that is not looked into, for those that the run "
             "requires; may be given several times");
  return [arguments](const Session& session) { return run_store_save(*arguments, session); };
}

}  // namespace thalia::cli
