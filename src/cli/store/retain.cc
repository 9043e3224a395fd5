// thalia store prune: retention, now, and why each checkpoint stays or goes.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command/command.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/store/retention_arguments.h"
#include "cli/store/store_arguments.h"
#include "cli/store/store_json.h"

namespace thalia::cli {
namespace {

using Fate = RetentionDecision::Fate;

struct RetainArguments {
  std::string run;
  std::string phase;
  bool dry_run = false;
  RetentionArguments retention;
};

struct RetainedPhase {
  std::string phase;
  StorePruneResult result;
};

const char* fate_name(Fate fate) {
  switch (fate) {
    case Fate::keep:
      return "keep";
    case Fate::squash:
      return "squash";
    case Fate::remove:
      break;
  }
  return "remove";
}

std::vector<RetainedPhase> retain(const RetainArguments& arguments, const Session& session,
                                  Warnings& warnings) {
  RunWriter writer = writer_of(arguments.run, session, warnings);
  std::vector<RetainedPhase> done;
  for (const std::string& phase : chosen_phases(writer.run(), arguments.phase)) {
    StorePruneOptions options{.dry_run = arguments.dry_run};
    if (arguments.retention.is_given())
      options.policy = arguments.retention.apply(writer.run().config().phase(phase).retention);
    done.push_back({phase, writer.prune(phase, options)});
  }
  return done;
}

void print_phase_retained(Output& out, const RetainedPhase& done) {
  using enum Table::Align;
  Table table({{""}, {"step", right}, {"size", right}, {"why"}});
  for (const RetentionDecision& decision : done.result.decisions) {
    const CheckpointEntry& entry = done.result.entries[decision.entry];
    table.add_row({fate_name(decision.fate), grouped(entry.step), human_bytes(entry.bytes),
                   escape(decision.reason)});
  }
  table.print(out);
}

void print_retained(Output& out, const RetainArguments& arguments,
                    const std::vector<RetainedPhase>& all) {
  std::uint64_t removed = 0, freed = 0;
  for (const RetainedPhase& done : all) {
    removed += done.result.removed.size();
    freed += done.result.freed_bytes;
    if (done.result.entries.empty()) continue;
    out.write(Style::heading, done.phase);
    out.write("\n");
    print_phase_retained(out, done);
  }
  out.print("{} {} removed, {} freed{}\n", counted(removed, "checkpoint", "checkpoints"),
            arguments.dry_run ? "would be"
            : removed == 1    ? "was"
                              : "were",
            human_bytes(freed), arguments.dry_run ? ": a dry run changes nothing" : "");
}

void print_retained_json(Output& out, const RetainArguments& arguments,
                         const std::vector<RetainedPhase>& all, const Warnings& warnings) {
  print_object(out, "thalia.store.prune.1", [&](JsonWriter& json) {
    json.member("path", as_utf8(arguments.run)).member("dry_run", arguments.dry_run);
    json.key("phases").begin_array();
    for (const auto& [phase, result] : all) {
      json.begin_object().member("name", phase).member("freed_bytes", result.freed_bytes);
      add_list(json, "removed", result.removed);
      json.key("decisions").begin_array();
      for (const RetentionDecision& decision : result.decisions) {
        json.begin_object().member("fate", fate_name(decision.fate));
        json.member("reason", as_utf8(decision.reason)).key("checkpoint");
        add_checkpoint(json, result.entries[decision.entry]);
        json.end_object();
      }
      json.end_array().end_object();
    }
    json.end_array();
    warnings.add_to(json);
  });
}

int run_retain(const RetainArguments& arguments, const Session& session) {
  Warnings warnings(session);
  const std::vector<RetainedPhase> all = retain(arguments, session, warnings);
  session.common.json ? print_retained_json(session.out, arguments, all, warnings)
                      : print_retained(session.out, arguments, all);
  return kDone;
}

}  // namespace

Run declare_store_prune(CLI::App& app) {
  app.description(
      "Removes the checkpoints that retention does not keep, as every save does at its end, and "
      "says of each one why it stays or goes. The latest, the best and what was copied to a gate "
      "stay in any case, and so does what a delta needs. Before anything goes, one that stays is "
      "read and found sound.");
  app.footer(
      "The run's configuration says what stays. --keep, --every-steps, --every and --keep-best are "
      "rules: one that is given takes the place of all of them, and a checkpoint stays where one "
      "of the rules asks for it. --max-age and --max-bytes are limits to that.\n\n"
      "Examples:\n  thalia store prune runs/first --dry-run\n"
      "  thalia store prune runs/first --phase phase1 --keep 5 --every 1d --keep-best 3");
  const auto arguments = std::make_shared<RetainArguments>();
  add_run(app, arguments->run);
  add_phase(app, arguments->phase, "This phase alone; default all");
  add_dry_run(app, arguments->dry_run);
  arguments->retention.declare(app);
  return [arguments](const Session& session) { return run_retain(*arguments, session); };
}

}  // namespace thalia::cli
