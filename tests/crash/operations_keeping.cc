// What changes a run beside its saves: removal, gates, the pool, the next phase.
#include <functional>
#include <string>

#include "crash/operation.h"
#include "crash/store_run.h"
#include "support/files.h"

namespace fs = std::filesystem;

namespace thalia::crash {
namespace store_keeping {
namespace {

constexpr const char* kTrain = "train";
constexpr const char* kGate = "train_best";

fs::path run_in(const fs::path& folder) {
  return folder / "run";
}

std::string observe(const fs::path& folder) {
  return description_of_run(run_in(folder));
}

void go_on(const fs::path& folder) {
  go_on_with_run(run_in(folder));
}

void tell(Teller& teller, const std::string& name, const std::function<void()>& work) {
  teller.attempt(name);
  work();
  teller.promise(name);
}

void save_steps(RunWriter& writer, std::initializer_list<std::uint64_t> steps) {
  for (const std::uint64_t step : steps)
    writer.save(kTrain, step, crash_state(step), {.metric = step == 3 ? 0.25 : 0.5});
}

RunWriter quick_writer(const fs::path& folder) {
  return RunWriter(run_in(folder), {.durability = Durability::none});
}

void prepare_steps(const fs::path& folder, RunConfig config, unsigned full_every) {
  config.phases[0].retention = {.keep_last = std::nullopt};
  if (full_every > 0) config.deltas = {.kind = DeltaPolicy::Kind::every, .full_every = full_every};
  create_run(run_in(folder), config);
  RunWriter writer = quick_writer(folder);
  save_steps(writer, {1, 2, 3, 4, 5, 6});
}

// --- Removal ------------------------------------------------------------------

// 1 ← 2 ← 3, 4 ← 5 ← 6; the third is the best.
void prepare_chains(const fs::path& folder) {
  prepare_steps(folder, crash_config(), 3);
}

template <NeededBases kBases>
void run_prune(const fs::path& folder, Teller& teller) {
  RunWriter writer(run_in(folder));
  RetentionPolicy policy{.keep_last = 3};
  policy.needed_bases = kBases;
  tell(teller, "three", [&] { writer.prune(kTrain, {.policy = policy}); });
  policy.keep_last = 1;
  tell(teller, "the least", [&] { writer.prune(kTrain, {.policy = policy}); });
}

// 1 <- 3 <- 4 <- 5, and the run goes back: 3 <- 2 <- 6.
void prepare_branches(const fs::path& folder) {
  RunConfig config = crash_config();
  config.phases[0].retention = {.keep_last = std::nullopt};
  config.deltas = {.kind = DeltaPolicy::Kind::every, .full_every = 9};
  create_run(run_in(folder), config);
  RunWriter writer = quick_writer(folder);
  save_steps(writer, {1, 3, 4, 5});
  writer.resume(kTrain, {.step = 3});
  save_steps(writer, {2, 6});
}

void run_rebase(const fs::path& folder, Teller& teller) {
  RunWriter writer(run_in(folder));
  tell(teller, "turned", [&] { writer.rebase(kTrain); });
}

// The latest and the best are damaged, so the newest that was to go stays. What a user finds then
// does not load; the steps that are left do.
void prepare_damaged(const fs::path& folder) {
  RunConfig config = crash_config_of_bytes();
  config.phases[0].retention = {.keep_last = std::nullopt};
  config.phases[0].metric.reset();
  create_run(run_in(folder), config);
  RunWriter writer = quick_writer(folder);
  for (const std::uint64_t step : {1, 2, 3, 4})
    writer.save_bytes(kTrain, step, test::bytes_of(crash_bytes(step)));
  test::write_file(writer.run().phase_folder(kTrain) / writer.run().file_name(kTrain, 4), "");
}

std::string observe_damaged(const fs::path& folder) {
  const Run run = Run::open(run_in(folder));
  const LoadedBytes loaded = run.load_bytes(kTrain);
  std::string text = "checkpoint train " + std::to_string(loaded.entry.step) + "\tloads\n";
  if (test::text_of(loaded.bytes.bytes) != crash_bytes(loaded.entry.step))
    throw std::logic_error("something is believed that nobody saved");
  for (const CheckpointEntry& entry : run.list(kTrain))
    text += "listed " + std::to_string(entry.step) + "\tis\n";
  return text;
}

void run_prune_damaged(const fs::path& folder, Teller& teller) {
  RunWriter writer(run_in(folder));
  tell(teller, "one", [&] { writer.prune(kTrain, {.policy = RetentionPolicy{.keep_last = 1}}); });
}

void go_on_from_damage(const fs::path& folder) {
  RunWriter writer(run_in(folder));
  writer.save_bytes(kTrain, 9, test::bytes_of(crash_bytes(9)));
  if (writer.run().load_bytes(kTrain).entry.step != 9)
    throw std::logic_error("the next save is not what is loaded");
}

// --- Gates --------------------------------------------------------------------

void prepare_full(const fs::path& folder) {
  prepare_steps(folder, crash_config(), 0);
}

// One after another, the second and third by force; what retention would take is what they were
// copied from.
void run_promote(const fs::path& folder, Teller& teller) {
  RunWriter writer(run_in(folder));
  tell(teller, "best", [&] { writer.promote(kTrain); });
  for (const std::uint64_t step : {5, 2})
    tell(teller, "forced " + std::to_string(step),
         [&] { writer.promote(kTrain, {.step = step, .force = true}); });
}

void prepare_opaque(const fs::path& folder) {
  RunConfig config = crash_config_of_bytes();
  create_run(run_in(folder), config);
  RunWriter writer = quick_writer(folder);
  for (const std::uint64_t step : {3, 5, 2})
    writer.save_bytes(kTrain, step, test::bytes_of(crash_bytes(step)), {.metric = 0.5});
}

// --- The pool -----------------------------------------------------------------

void prepare_pool(const fs::path& folder) {
  prepare_steps(folder, crash_config_with_pool(), 0);
  RunWriter writer = quick_writer(folder);
  Pool pool(writer);
  pool.add(kTrain, 1, {.mu = 20, .sigma = 4});
}

void run_pool(const fs::path& folder, Teller& teller) {
  RunWriter writer(run_in(folder));
  Pool pool(writer);
  const auto add = [&](std::uint64_t step) {
    tell(teller, "add " + std::to_string(step),
         [&] { pool.add(kTrain, step, {.mu = 20.0 + static_cast<double>(step), .sigma = 4}); });
  };
  add(2);
  tell(teller, "rated", [&] { pool.rate(2, {.mu = 31, .sigma = 2}, 12, 0.75); });
  add(3);
  add(4);
}

// --- The next phase -----------------------------------------------------------

void prepare_gate(const fs::path& folder) {
  prepare_pool(folder);
  RunWriter writer = quick_writer(folder);
  writer.promote(kTrain);
}

void run_transition(const fs::path& folder, Teller& teller) {
  RunWriter writer(run_in(folder));
  TransitionPlan plan{.from = kTrain, .to = "league", .gate = kGate};
  plan.anchor = {"model*"};
  plan.pool_anchors = {kGate};
  tell(teller, "begun", [&] { transition(writer, plan, {.master_seed = 7}); });
  plan.anchor = {"model.w"};
  tell(teller, "begun again", [&] { transition(writer, plan, {.master_seed = 8, .force = true}); });
}

#define OPERATION(name, prepare, run) \
  { name, prepare, run, observe, go_on, false, fault_of_run }
constexpr Operation kOperations[] = {
    OPERATION("store: prune", prepare_chains, run_prune<NeededBases::keep>),
    OPERATION("store: prune, squash", prepare_chains, run_prune<NeededBases::squash>),
    OPERATION("store: rebase", prepare_chains, run_rebase),
    OPERATION("store: rebase, named", prepare_chains, run_named<run_rebase>),
    OPERATION("store: rebase, branches", prepare_branches, run_rebase),
    {"store: prune, newest damaged", prepare_damaged, run_prune_damaged, observe_damaged,
     go_on_from_damage, false, fault_of_run},
    OPERATION("store: promote", prepare_full, run_promote),
    OPERATION("store: promote, named", prepare_full, run_named<run_promote>),
    OPERATION("store: promote a delta", prepare_chains, run_promote),
    OPERATION("store: promote bytes", prepare_opaque, run_promote),
    OPERATION("store: pool", prepare_pool, run_pool),
    OPERATION("store: pool, named", prepare_pool, run_named<run_pool>),
    OPERATION("store: transition", prepare_gate, run_transition),
    OPERATION("store: transition, named", prepare_gate, run_named<run_transition>),
};
#undef OPERATION

}  // namespace
}  // namespace store_keeping

std::span<const Operation> store_keeping_operations() {
  return store_keeping::kOperations;
}

}  // namespace thalia::crash
