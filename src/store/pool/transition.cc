// All that can be wrong is found before a byte is written. Then each file is on the disk before the
// next one, and transition.json, by which the phase has begun, comes last: a crash leaves a phase
// that has not begun, and files that the next try replaces.
#include "thalia/store/transition.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "container/write/file_digest.h"
#include "io/folder/folder.h"
#include "io/output/atomic_file.h"
#include "state/delta/save_state.h"
#include "store/pool/next_state.h"
#include "store/pool/pool_folder.h"
#include "store/pool/seeded_words.h"
#include "store/run/config_text.h"
#include "store/run/sidecar.h"
#include "store/save/impl.h"
#include "store/save/payload.h"
#include "thalia/text.h"

namespace thalia {
namespace {

using store::NextState;
using store::SaveSession;
using store::StatePart;

Value plan_tree(const TransitionPlan& plan) {
  Value tree = Value::object();
  tree.add("from", plan.from);
  tree.add("to", plan.to);
  tree.add("gate", plan.gate);
  Value& checks = tree.add("checks", Value::array());
  for (const TransitionCheck& check : plan.checks) {
    Value object = Value::object();
    object.add("key", check.key);
    object.add("value", check.value);
    checks.push_back(std::move(object));
  }
  tree.add("carries", store::list_of(plan.carries));
  tree.add("resets", store::list_of(plan.resets));
  Value& copies = tree.add("copies", Value::array());
  for (const TransitionCopy& copy : plan.copies) {
    Value object = Value::object();
    object.add("from", copy.from);
    object.add("to", copy.to);
    copies.push_back(std::move(object));
  }
  tree.add("anchor", store::list_of(plan.anchor));
  tree.add("pool_anchors", store::list_of(plan.pool_anchors));
  tree.add("seeds_pool", plan.seeds_pool);
  return tree;
}

class Transition {
 public:
  Transition(const RunWriter& writer, const SaveSession& session, const TransitionPlan& plan,
             const TransitionOptions& options)
      : run_(writer.run()), session_(session), plan_(plan), options_(options) {}

  TransitionResult run() {
    require_phases();
    const LoadedCheckpoint gate = load_gate(plan_.gate);
    step("load", fmt::format("{} of step {} is what was promoted", gate.path.filename().string(),
                             gate.entry.step));
    const std::string_view texts = gate.chain.reader().metadata_json();
    store::check_gate(plan_, texts.empty() ? Value::object() : parse_json(texts));
    NextState next = store::next_state(plan_, gate.chain);
    if (!options_.model.empty()) store::check_model(next, options_.model, gate.path);
    std::optional<StatePart> anchor;
    if (!plan_.anchor.empty()) anchor = store::anchor_state(plan_, gate.chain);
    check_pool();
    tell_checks();

    digest_ = store::read_sidecar(session_.files(), gate.path).value_or("");
    session_.files().make_folders(folder_, session_.options.durability);
    forget_beginning();
    write_start(std::move(next));
    if (anchor) write_anchor(std::move(*anchor));
    begin_pool();
    result_.seed = store::seeded_words("phase", {options_.master_seed}, plan_.to)[0];
    step("seed", fmt::format("random numbers of {} begin with {}", plan_.to, result_.seed));
    store::forget_best(session_, plan_.to);
    step("best", fmt::format("the next metric of {} is its best", plan_.to));
    write_record(gate);
    return std::move(result_);
  }

 private:
  void step(std::string name, std::string what) {
    result_.steps.push_back({std::move(name), std::move(what)});
  }

  std::filesystem::path file(std::string_view name) const {
    return folder_ / fmt::format("{}.{}", name, run_.config().extension);
  }

  LoadedCheckpoint load_gate(const std::string& name) const {
    LoadOptions load{.on_warning = session_.options.on_warning};
    load.read = session_.files().reading(session_.options.cancel);
    return run_.load_gate(name, load);
  }

  void require_phases() {
    run_.config().phase(plan_.from);
    run_.config().phase(plan_.to);
    folder_ = run_.folder() / plan_.to;
    const OutputOptions output = session_.output(options_.force);
    io::check_output_name(record(), output);
    // A phase that has saved has begun, too, no matter who began it.
    if (const std::optional<CheckpointEntry> latest = run_.latest(plan_.to))
      io::check_output_name(run_.path_of(*latest), output);
  }

  std::filesystem::path record() const { return folder_ / "transition.json"; }

  void check_pool() const {
    if (plan_.pool_anchors.empty() && !plan_.seeds_pool) return;
    const PoolView pool = store::list_pool(session_.run).view;
    for (const std::string& name : plan_.pool_anchors) {
      load_gate(name);
      if (std::ranges::find(pool.anchors, name, &PoolMember::name) != pool.anchors.end()) continue;
      fail_argument(ErrorCode::not_found, "pool_anchors", fmt::format("'{}'", printable(name, 60)),
                    "an anchor of the run's pool");
    }
  }

  void tell_checks() {
    for (const TransitionCheck& check : plan_.checks)
      step("check", fmt::format("{} is {}", check.key, check.value));
    if (!options_.model.empty())
      step("check", fmt::format("the model has all {} tensors that are carried over, and no others",
                                options_.model.size()));
  }

  // Where the phase had begun before, it has not until all of it is there again.
  void forget_beginning() const {
    container::remove_sha256_file(record(), session_.output());
    const io::Folder folder = session_.files().folder(folder_);
    if (folder.remove(record().filename().string()) && session_.syncs_folders()) folder.sync();
  }

  void save(StatePart part, const std::filesystem::path& path) const {
    Value origin = Value::object();
    origin.add("from", plan_.from);
    origin.add("to", plan_.to);
    origin.add("gate", plan_.gate);
    origin.add("gate_sha256", digest_);
    part.metadata["transition"] = std::move(origin);
    state::save_state(std::move(part).finish(), path,
                      SaveOptions{.sha256 = true,
                                  .output = session_.output(),
                                  .work = {.cancel = session_.options.cancel}});
  }

  void write_start(NextState next) {
    result_.carried = next.start.kept;
    result_.reset = next.reset;
    result_.start = file("start");
    save(std::move(next.start), result_.start);
    step("carry", fmt::format("{} tensors begin the phase as they are", result_.carried.size()));
    step("reset", fmt::format("{} tensors and members begin anew", result_.reset.size()));
    for (const TransitionCopy& copy : plan_.copies)
      step("copy", fmt::format("{} begins as a copy of {}", copy.to, copy.from));
  }

  void write_anchor(StatePart anchor) {
    const std::size_t tensors = anchor.kept.size();
    result_.anchor = file("kl_anchor");
    save(std::move(anchor), *result_.anchor);
    step("anchor", fmt::format("{} tensors are kept frozen in {}", tensors,
                               result_.anchor->filename().string()));
  }

  void begin_pool() {
    if (plan_.pool_anchors.empty() && !plan_.seeds_pool) return;
    session_.files().make_folders(session_.run.pool(), session_.options.durability);
    if (plan_.seeds_pool) store::reset_ratings(session_);
    store::write_roster(session_);
    const PoolView pool = store::list_pool(session_.run).view;
    step("pool",
         fmt::format("{} anchors and {} versions{}", pool.anchors.size(), pool.versions.size(),
                     plan_.seeds_pool ? ", all with the rating of a new model" : ""));
  }

  void write_record(const LoadedCheckpoint& gate) const {
    Value tree = Value::object();
    tree.add("plan", plan_tree(plan_));
    Value& of_gate = tree.add("gate", Value::object());
    of_gate.add("file", gate.entry.file);
    of_gate.add("phase", gate.entry.phase);
    of_gate.add("step", gate.entry.step);
    of_gate.add("sha256", digest_);
    tree.add("master_seed", options_.master_seed);
    tree.add("seed", result_.seed);
    Value& steps = tree.add("steps", Value::array());
    for (const TransitionStep& done : result_.steps) {
      Value object = Value::object();
      object.add("name", done.name);
      object.add("what", done.what);
      steps.push_back(std::move(object));
    }
    tree.add("carried", store::list_of(result_.carried));
    tree.add("reset", store::list_of(result_.reset));
    tree.add("began_at", store::now_seconds());
    const std::string text = store::pretty_json(tree);
    store::write_payload(session_, record(), as_byte_span(text), session_.output());
  }

  const Run& run_;
  const SaveSession& session_;
  const TransitionPlan& plan_;
  const TransitionOptions& options_;
  std::filesystem::path folder_;
  std::string digest_;  ///< of the gate
  TransitionResult result_;
};

}  // namespace

TransitionResult transition(RunWriter& run, const TransitionPlan& plan,
                            const TransitionOptions& options) {
  const auto& impl = store::impl_of(run);
  const auto held = impl.lock();
  const SaveSession session = impl.session();
  return Transition(run, session, plan, options).run();
}

}  // namespace thalia
