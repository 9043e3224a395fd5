// thalia store publish: the state of a file, for those who follow a run.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "cli/command/command.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/store/store_arguments.h"
#include "cli/store/store_json.h"
#include "thalia/formats/any_file.h"
#include "thalia/store/publish.h"

namespace thalia::cli {
namespace {

struct StorePublishArguments {
  std::string run;
  std::string file;
  std::string phase;
  std::optional<std::uint64_t> step;
  std::optional<double> metric;
};

void print_published(Output& out, const PublishedState& published) {
  const CheckpointEntry& entry = published.entry;
  out.print("step {} of {}: {}, {}, {} of {} tensors changed, visible after {:.3f} s{}\n",
            grouped(entry.step), entry.phase,
            entry.is_delta() ? fmt::format("a delta on {}", escape(entry.base)) : "a full file",
            human_bytes(entry.bytes), published.changed, published.tensors,
            published.visible_seconds,
            published.is_best ? fmt::format("; the best of {}", entry.phase) : "");
  for (const std::string& file : published.removed) out.print("removed: {}\n", escape(file));
}

int run_store_publish(const StorePublishArguments& arguments, const Session& session) {
  Warnings warnings(session);
  RunWriter writer = writer_of(arguments.run, session, warnings);
  // Whatever it took, the process ends after one: nothing is held for the next.
  Publisher publisher(writer,
                      {.phase = chosen_phase(writer.run(), arguments.phase), .hold = false});
  const StateSource state = state_source(arguments.file, session.options<OpenOptions>().chain);
  std::uint64_t step = state.training_steps;
  if (step == 0) step = publisher.newest().value_or(0) + 1;
  PublishOptions options = session.options<PublishOptions>();
  options.metric = arguments.metric;
  const PublishedState published = publisher.publish(arguments.step.value_or(step), state, options);
  if (!session.common.json) {
    print_published(session.out, published);
    return kDone;
  }
  print_object(session.out, "thalia.store.publish.1", [&](JsonWriter& json) {
    json.member("path", as_utf8(published.path.string())).key("checkpoint");
    add_checkpoint(json, published.entry);
    json.member("best", published.is_best);
    add_list(json, "removed", published.removed);
    json.member("tensors", published.tensors).member("changed", published.changed);
    json.member("visible_seconds", published.visible_seconds);
    json.member("seconds", published.seconds).member("sync_seconds", published.sync_seconds);
    warnings.add_to(json);
  });
  return kDone;
}

}  // namespace

Run declare_store_publish(CLI::App& app) {
  app.description(
      "Publishes the state of a .thalia file, a delta or a model in parts as the newest of a run: "
      "what changed since the one before, or a full file, as the run's configuration says. The "
      "latest leads to it once it is whole and on the disk, so who follows the run has the old "
      "state or the new one. A step that is not after the latest is refused. Then what retention "
      "does not keep goes, but for what a follower holds or needs.");
  app.footer("Example:\n  thalia store publish runs/first step-2000.thalia");
  const auto arguments = std::make_shared<StorePublishArguments>();
  add_run(app, arguments->run);
  add_model(app, "FILE", arguments->file, "The file whose state is published");
  add_phase(app, arguments->phase,
            "Its phase; default the last one that has a checkpoint, or the only one");
  add_step(app, arguments->step,
           "Its step; default the training steps that the file tells, or one after the latest");
  add_option(app, "--metric M", arguments->metric, "Its value of the phase's metric");
  return [arguments](const Session& session) { return run_store_publish(*arguments, session); };
}

}  // namespace thalia::cli
