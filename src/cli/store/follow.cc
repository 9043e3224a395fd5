// thalia store follow: the newest state of a run, in a file or in memory, and a line for each step
// that it takes.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "cli/command/command.h"
#include "cli/print/complaint.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/store/duration.h"
#include "cli/store/store_arguments.h"
#include "thalia/error.h"
#include "thalia/store/follow.h"
#include "thalia/text.h"

namespace thalia::cli {
namespace {

struct FollowArguments {
  std::string folder;
  std::string phase;
  std::string into;
  bool once = false;
  bool polling = false;
  std::optional<std::uint64_t> timeout;
  double interval = 1;
};

std::string text_of(const FollowUpdate& update) {
  std::string text = fmt::format("step {}", grouped(update.step));
  if (!update.phase.empty()) text += " of " + update.phase;
  const std::string way = update.deltas == 0   ? "whole"
                          : update.deltas == 1 ? "1 delta"
                                               : fmt::format("{} deltas", update.deltas);
  std::string changed = "nothing";
  if (!update.changed.empty())
    changed = fmt::format("{} of {} tensor{}", human_bytes(update.bytes_changed),
                          update.changed.size(), update.changed.size() == 1 ? "" : "s");
  text += fmt::format(": {}, {} read, {} changed, {:.3f} s after it was saved\n", way,
                      human_bytes(update.bytes_read), changed, update.latency);
  if (update.went_back) text += "  the run went back to this step\n";
  if (update.fell_back) text += fmt::format("  fell back: {}\n", escape(update.reason));
  return text;
}

void print_json(Output& out, const FollowUpdate& update) {
  print_object(out, "thalia.store.follow.1", [&](JsonWriter& json) {
    json.member("number", update.number).member("phase", update.phase);
    json.member("step", update.step).member("path", as_utf8(update.file.string()));
    json.member("file_bytes", update.bytes).member("deltas", update.deltas);
    json.member("bytes_read", update.bytes_read).member("bytes_changed", update.bytes_changed);
    const auto names = [&](const char* key, const std::vector<std::string>& list) {
      json.key(key).begin_array();
      for (const std::string& name : list) json.value(as_utf8(name));
      json.end_array();
    };
    names("changed", update.changed);
    names("removed", update.removed);
    json.member("fell_back", update.fell_back).key("reason");
    update.fell_back ? json.value(as_utf8(update.reason)) : json.null();
    json.member("went_back", update.went_back);
    json.member("seconds", update.seconds).member("latency", update.latency);
  });
}

int run_follow(const FollowArguments& arguments, const Session& session) {
  check_interval(arguments.interval);
  auto options = session.options<FollowOptions>();
  options.phase = arguments.phase;
  options.into = arguments.into;
  options.polling = arguments.polling;
  options.interval = std::chrono::milliseconds(static_cast<std::int64_t>(arguments.interval * 1e3));
  // At once, for who reads the lines as they come.
  options.on_warning = [](const std::string& sentence) { complain(sentence, kDone); };
  std::optional<std::chrono::milliseconds> timeout;
  if (arguments.timeout) timeout = std::chrono::seconds(*arguments.timeout);
  Follower follower(arguments.folder, options);
  while (!session.out.closed()) {
    const std::optional<FollowUpdate> update = follower.wait(timeout);
    // Nothing came for so long.
    if (!update) return kFailed;
    if (session.common.json) {
      print_json(session.out, *update);
    } else {
      session.out.write(text_of(*update));
    }
    session.out.flush();
    if (arguments.once) break;
  }
  return kDone;
}

}  // namespace

Run declare_store_follow(CLI::App& app) {
  app.description(
      "Takes each new checkpoint of a run, or of a folder with .thalia files, as it comes: by its "
      "deltas in order where there are such, else whole. All of it is verified before it counts. "
      "With --into the newest state is in that file, which is a whole .thalia file at each moment; "
      "else in memory, to see what following costs. What cannot be read is passed over with a "
      "warning. It prints a line for each step, and goes on until it is ended by Ctrl-C.");
  app.footer("Example:\n  thalia store follow runs/first --into serving.thalia");
  const auto arguments = std::make_shared<FollowArguments>();
  add_run(app, arguments->folder, "The folder of the run, or one with files");
  add_phase(app, arguments->phase, "This phase alone; default: the last one with a checkpoint");
  offer(add_option(app, "--into FILE", arguments->into,
                   "The file that holds the newest state; one that is there is replaced"),
        kFile);
  app.add_flag("--once", arguments->once, "End after the first step that is taken");
  add_duration(app, "--timeout TIME", arguments->timeout,
               "End with exit status 1 once nothing has come for so long");
  add_interval(app, arguments->interval,
               "How often to look where the system does not report changes; default 1");
  app.add_flag("--poll", arguments->polling, "Do not ask the system to report changes");
  return [arguments](const Session& session) { return run_follow(*arguments, session); };
}

}  // namespace thalia::cli
