// thalia store transition: the next phase begins with what its plan carries over.
#include "thalia/store/transition.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command/command.h"
#include "cli/print/json_result.h"
#include "cli/print/print.h"
#include "cli/store/store_arguments.h"
#include "thalia/error.h"

namespace thalia::cli {
namespace {

struct TransitionArguments {
  std::string run;
  std::string from;
  std::string to;
  std::optional<std::uint64_t> seed;
};

TransitionPlan plan_of(const TransitionArguments& arguments) {
  std::string known;
  for (TransitionPlan& plan : hydra_transitions()) {
    if (plan.from == arguments.from && plan.to == arguments.to) return std::move(plan);
    known += fmt::format("{}{} to {}", known.empty() ? "" : ", ", plan.from, plan.to);
  }
  throw UsageError(
      ErrorCode::not_found, "there is no plan for this transition",
      {.field = "FROM TO", .value = escape(arguments.from + " " + arguments.to), .bound = known});
}

void print_transition(Output& out, const TransitionResult& result) {
  Table table({{"step"}, {"what"}});
  for (const TransitionStep& step : result.steps) table.add_row({step.name, escape(step.what)});
  table.print(out);
  out.print("{}: {} carried over, {} made anew; seed {}\n", escape(result.start.string()),
            counted(result.carried.size(), "tensor", "tensors"),
            counted(result.reset.size(), "part", "parts"), result.seed);
  if (result.anchor) out.print("{}: the frozen policy\n", escape(result.anchor->string()));
}

int run_transition(const TransitionArguments& arguments, const Session& session) {
  const TransitionPlan plan = plan_of(arguments);
  Warnings warnings(session);
  RunWriter writer = writer_of(arguments.run, session, warnings);
  const TransitionResult result = transition(
      writer, plan, {.master_seed = arguments.seed.value_or(0), .force = session.common.replace});
  if (!session.common.json) {
    print_transition(session.out, result);
    return kDone;
  }
  print_object(session.out, "thalia.store.transition.1", [&](JsonWriter& json) {
    json.member("path", as_utf8(arguments.run)).member("from", plan.from).member("to", plan.to);
    json.member("start", as_utf8(result.start.string())).key("anchor");
    result.anchor ? json.value(as_utf8(result.anchor->string())) : json.null();
    json.member("seed", result.seed).key("steps").begin_array();
    for (const TransitionStep& step : result.steps) {
      json.begin_object().member("name", step.name).member("what", as_utf8(step.what));
      json.end_object();
    }
    json.end_array();
    add_list(json, "carried", result.carried);
    add_list(json, "reset", result.reset);
    warnings.add_to(json);
  });
  return kDone;
}

}  // namespace

Run declare_store_transition(CLI::App& app) {
  app.description(
      "Begins the next phase of a run of the preset hydra, by its plan: loads the gate of the "
      "phase "
      "before, checks it, carries over what is carried over, and leaves out what begins anew. "
      "Writes start and where the plan has one kl_anchor beside the phase's checkpoints, and what "
      "was done as transition.json. Nothing is written unless all checks hold.");
  const auto arguments = std::make_shared<TransitionArguments>();
  add_run(app, arguments->run);
  offer(app.add_option("FROM", arguments->from, "The phase that ends")->required(), kPhase);
  offer(app.add_option("TO", arguments->to, "The phase that begins")->required(), kPhase);
  add_master_seed(app, arguments->seed,
                  "The run's seed, of which that of the phase is made; default 0");
  return [arguments](const Session& session) { return run_transition(*arguments, session); };
}

}  // namespace thalia::cli
