// What stays of a run: retention, gates, the best, and what is repaired.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include "python/store/store.h"
#include "thalia/store/repair.h"

namespace thalia::python {
namespace {

namespace nb = nanobind;

// What prune() decided, each with the entry that it is about.
struct Decided {
  CheckpointEntry entry{};
  RetentionDecision::Fate fate = RetentionDecision::Fate::keep;
  std::string reason{};
};
struct Pruned {
  std::vector<Decided> decisions{};
  std::vector<std::string> removed{};
  std::uint64_t freed_bytes = 0;
};

// `config_json`: of a run with one phase, whose retention is taken in place of the phase's.
Pruned prune_run(const PyRunWriter& self, const std::string& phase, bool dry_run,
                 const std::optional<std::string>& config_json) {
  const std::shared_ptr<RunWriter> run = self.get();
  StorePruneOptions options{.dry_run = dry_run};
  if (config_json)
    options.policy = parse_run_config(*config_json, ConfigFormat::json).phases.at(0).retention;
  const StorePruneResult result =
      interruptible([&](const std::stop_token&) { return run->prune(phase, options); });
  Pruned out{.removed = result.removed, .freed_bytes = result.freed_bytes};
  for (const RetentionDecision& decision : result.decisions)
    out.decisions.push_back({result.entries[decision.entry], decision.fate, decision.reason});
  return out;
}

RebaseResult rebase_run(const PyRunWriter& self, const std::string& phase, unsigned max_depth) {
  const std::shared_ptr<RunWriter> run = self.get();
  return interruptible(
      [&](const std::stop_token&) { return run->rebase(phase, {.max_depth = max_depth}); });
}

PromoteResult promote_checkpoint(const PyRunWriter& self, const std::string& phase,
                                 std::optional<std::uint64_t> step,
                                 const std::optional<std::string>& gate, bool force) {
  const std::shared_ptr<RunWriter> run = self.get();
  const PromoteOptions options{.step = step, .gate = gate, .force = force};
  return interruptible([&](const std::stop_token&) { return run->promote(phase, options); });
}

void reset_best(const PyRunWriter& self, const std::string& phase) {
  const std::shared_ptr<RunWriter> run = self.get();
  const Unlocked unlocked;
  run->reset_best(phase);
}

// Without a progress callback: it would be called while the run is locked, and could wait for that.
StoreReport repair(const PyRunWriter& self, const std::optional<std::string>& phase, bool quick,
                   unsigned threads) {
  const std::shared_ptr<RunWriter> run = self.get();
  StoreCheckOptions options{
      .phase = phase.value_or(""), .quick = quick, .work = {.threads = threads}};
  return interruptible([&](const std::stop_token& stop) {
    options.work.cancel = stop;
    return repair_run(*run, options);
  });
}

void bind_pruned(nb::module_& module) {
  bind_result<Decided>(
      module, "RetentionDecision", "What becomes of a checkpoint.", field("entry", &Decided::entry),
      field("fate", &Decided::fate, "\"squash\": a delta that becomes a full file, and stays."),
      field("reason", &Decided::reason));
  bind_result<Pruned>(module, "PruneResult", "What prune() did, or would do.",
                      field("decisions", &Pruned::decisions), field("removed", &Pruned::removed),
                      field("freed_bytes", &Pruned::freed_bytes));
}

}  // namespace

void bind_keeping(nb::module_& module, RunWriterClass& writer) {
  bind_pruned(module);
  writer
      .def("prune", prune_run, nb::arg("phase"), nb::arg("dry_run"), nb::arg("config_json").none())
      .def("rebase", rebase_run, nb::arg("phase"), nb::arg("max_depth"))
      .def("promote", promote_checkpoint, nb::arg("phase"), nb::arg("step").none(),
           nb::arg("gate").none(), nb::arg("force"))
      .def("reset_best", reset_best, nb::arg("phase"))
      .def("repair", repair, nb::arg("phase").none(), nb::arg("quick"), nb::arg("threads"));
}

}  // namespace thalia::python
