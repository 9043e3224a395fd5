// thalia store list: a run, or the runs of a folder.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command/command.h"
#include "cli/print/error_json.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/store/run_facts.h"
#include "cli/store/store_arguments.h"
#include "thalia/error.h"

namespace thalia::cli {
namespace {

struct ListArguments {
  std::string folder;
  std::string phase;
};

// One of several runs; one that cannot be read does not hide the others.
struct ListedRun {
  RunSummary summary;
  std::optional<RunFacts> facts{};
  std::string failure{};
};

std::vector<ListedRun> listed_runs(const std::vector<RunSummary>& runs) {
  std::vector<ListedRun> listed;
  for (const RunSummary& summary : runs) {
    listed.push_back({summary});
    ListedRun& one = listed.back();
    try {
      one.facts = run_facts_of(thalia::Run::open(summary.folder), "");
    } catch (const CancelledError&) {
      throw;
    } catch (const Error& error) {
      one.failure = error_text(error);
    }
  }
  return listed;
}

// The facts of the current phase; nullptr if nothing was saved.
const PhaseFacts* current_of(const RunFacts& facts) {
  for (const PhaseFacts& phase : facts.phases)
    if (phase.config.name == facts.current_phase) return &phase;
  return nullptr;
}

void print_runs(Output& out, const std::vector<ListedRun>& runs) {
  using enum Table::Align;
  Table table({{"run"},
               {"phase"},
               {"checkpoints", right},
               {"latest", right},
               {"best", right},
               {"gates", right},
               {"size", right}});
  for (const ListedRun& run : runs) {
    if (!run.facts) {
      table.add_row({escape(run.summary.id), escape(run.failure)});
      continue;
    }
    const PhaseFacts* const phase = current_of(*run.facts);
    std::uint64_t checkpoints = 0;
    for (const PhaseFacts& one : run.facts->phases) checkpoints += one.checkpoints.size();
    const auto step_text = [&](std::optional<std::uint64_t> PhaseFacts::*step) -> std::string {
      return phase != nullptr && phase->*step ? grouped(*(phase->*step)) : "-";
    };
    table.add_row({escape(run.summary.id), phase == nullptr ? "-" : phase->config.name,
                   count_or_dash(checkpoints), step_text(&PhaseFacts::latest),
                   step_text(&PhaseFacts::best), count_or_dash(run.facts->gates.size()),
                   human_bytes(run.facts->bytes())});
  }
  table.print(out);
}

void print_runs_json(Output& out, const std::string& folder, const std::vector<ListedRun>& runs) {
  print_object(out, "thalia.store.list.1", [&](JsonWriter& json) {
    json.member("path", as_utf8(folder)).key("runs").begin_array();
    for (const ListedRun& run : runs) {
      json.begin_object().member("id", as_utf8(run.summary.id)).key("failure");
      run.facts ? json.null() : json.value(as_utf8(run.failure));
      json.key("run");
      run.facts ? add_run_facts(json, *run.facts) : static_cast<void>(json.null());
      json.end_object();
    }
    json.end_array();
  });
}

// The run in the folder; if the folder is not a run, the runs in it. @throws what Run::open() does
// if there is none.
std::optional<thalia::Run> run_or_runs(const std::string& folder, std::vector<RunSummary>& runs) {
  try {
    return thalia::Run::open(folder);
  } catch (const UsageError& error) {
    if (error.code() == ErrorCode::not_found) runs = find_runs(folder);
    if (runs.empty()) throw;
    return std::nullopt;
  }
}

int run_list(const ListArguments& arguments, const Session& session) {
  std::vector<RunSummary> runs;
  if (const auto run = run_or_runs(arguments.folder, runs)) {
    const RunFacts facts = run_facts_of(*run, arguments.phase);
    if (session.common.json) {
      print_object(session.out, "thalia.store.list.1", [&](JsonWriter& json) {
        json.member("path", as_utf8(arguments.folder)).key("run");
        add_run_facts(json, facts);
      });
    } else {
      print_run(session.out, facts, seconds_since_1970());
    }
    return kDone;
  }
  if (!arguments.phase.empty())
    throw UsageError(ErrorCode::bad_argument, "the folder is no run, but has some in it",
                     {.path = arguments.folder, .field = "--phase"});
  const std::vector<ListedRun> listed = listed_runs(runs);
  session.common.json ? print_runs_json(session.out, arguments.folder, listed)
                      : print_runs(session.out, listed);
  return kDone;
}

}  // namespace

Run declare_store_list(CLI::App& app) {
  app.description(
      "Lists the checkpoints of each phase: step, when it was saved, the phase's metric, size, "
      "whether it is a full file or a delta and on which step, and why retention leaves it alone. "
      "Below them gates and the pool. For a folder that is not a run, the runs in it. No "
      "checkpoint is opened.");
  const auto arguments = std::make_shared<ListArguments>();
  add_run(app, arguments->folder, "The folder of a run, or of several runs");
  add_phase(app, arguments->phase, "This phase alone");
  return [arguments](const Session& session) { return run_list(*arguments, session); };
}

}  // namespace thalia::cli
