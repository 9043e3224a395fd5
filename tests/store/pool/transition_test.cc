// From phase to phase by the specification's plans and by others: what is carried over, and what is
// not.
#include <algorithm>

#include "integrity/sha256.h"
#include "store/pool/runs.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(store_transition)

namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

std::vector<std::string> step_names(const TransitionResult& result) {
  std::vector<std::string> names;
  for (const TransitionStep& step : result.steps) names.push_back(step.name);
  return names;
}

std::uint64_t seed_of(std::uint64_t master, const std::string& phase) {
  std::string message = "phase";
  for (int i = 0; i < 8; ++i) message += static_cast<char>(master >> (8 * i));
  const Digest256 digest = integrity::sha256(bytes_of(message + phase));
  std::uint64_t seed = 0;
  for (int i = 7; i >= 0; --i) seed = seed << 8 | digest.bytes[i];
  return seed;
}

std::vector<ExpectedTensor> model() {
  return {{"head", {3, 2}, DType::f32}, {"model_record/stem", {4, 3}, DType::bf16}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(distillation_begins_with_the_gate_and_a_teacher_like_it) {
  const HydraRun run;
  RunWriter writer = run.writer();
  HydraRun::play_phase1(writer);
  const TransitionResult begun =
      transition(writer, to_distillation(), {.master_seed = 7, .model = model()});
  BOOST_TEST(begun.start == run.path() / "phase2" / "start.thalia");
  BOOST_TEST(
      (tensor_names(begun.start) == Names{"model_record/head", "model_record/stem",
                                          "teacher_state_dict/head", "teacher_state_dict/stem"}));
  for (const char* const region : {"model_record", "teacher_state_dict"})
    BOOST_TEST((read_tensor(begun.start, region + std::string("/stem")) ==
                numbered_tensor(DType::bf16, {4, 3}, 2)));
  const Value metadata = metadata_of(begun.start);
  BOOST_TEST(metadata.at("global_step").as_uint64() == 200u);
  BOOST_TEST(metadata.find("config") != nullptr);
  for (const char* const reset : {"phase", "metrics", "timestamp"})
    BOOST_TEST(metadata.find(reset) == nullptr);
  BOOST_TEST(metadata.at("transition").at("gate").as_string() == "bc_best");
  BOOST_TEST((begun.carried == Names{"model_record/head", "model_record/stem"}));
  for (const char* const reset : {"optimizer_record/stem.exp_avg", "rng_state/words", "metrics"})
    BOOST_TEST((std::ranges::find(begun.reset, reset) != begun.reset.end()));
  BOOST_TEST(begun.seed == seed_of(7, "phase2"));
  BOOST_TEST((step_names(begun) ==
              Names{"load", "check", "carry", "reset", "copy", "anchor", "seed", "best"}));
}

BOOST_AUTO_TEST_CASE(the_policy_is_kept_frozen_beside_the_start) {
  const HydraRun run;
  RunWriter writer = run.writer();
  HydraRun::play_phase1(writer);
  const TransitionResult begun = transition(writer, to_distillation());
  BOOST_REQUIRE(begun.anchor.has_value());
  BOOST_TEST(*begun.anchor == run.path() / "phase2" / "kl_anchor.thalia");
  BOOST_TEST((tensor_names(*begun.anchor) == Names{"model_record/head", "model_record/stem"}));
  BOOST_TEST((begun_files(run, "phase2") == Names{"kl_anchor.thalia", "kl_anchor.thalia.sha256",
                                                  "start.thalia", "start.thalia.sha256",
                                                  "transition.json", "transition.json.sha256"}));
}

BOOST_AUTO_TEST_CASE(the_frozen_policy_has_nothing_of_its_training) {
  const HydraRun run;
  RunWriter writer = run.writer();
  StateSource record = record_of({.step = 100});
  Value metadata = parse_json(record.metadata_json);
  metadata.add("optimizer_record", parse_json(R"({"groups":[{"lr":0.5}]})"));
  metadata.add("lr_schedulers", parse_json(R"([{"last_epoch":3}])"));
  record.metadata_json = to_json(metadata);
  writer.save("phase1", 100, record);
  writer.promote("phase1");
  const Value kept = metadata_of(*transition(writer, to_distillation()).anchor);
  BOOST_TEST(kept.find("optimizer_record") == nullptr);
  BOOST_TEST(kept.find("lr_schedulers") == nullptr);
  BOOST_TEST(kept.at("global_step").as_uint64() == 100u);
}

BOOST_AUTO_TEST_CASE(the_record_of_a_transition_says_what_was_done) {
  const HydraRun run;
  RunWriter writer = run.writer();
  HydraRun::play_phase1(writer);
  const TransitionResult begun = transition(writer, to_distillation(), {.master_seed = 3});
  const Value record = parse_json(read_file(run.path() / "phase2" / "transition.json"));
  BOOST_TEST(record.at("plan").at("from").as_string() == "phase1");
  BOOST_TEST(record.at("gate").at("step").as_uint64() == 200u);
  BOOST_TEST(record.at("gate").at("sha256").as_string() ==
             read_file(run.path() / "gates" / "bc_best.thalia.sha256").substr(0, 64));
  BOOST_TEST(record.at("master_seed").as_uint64() == 3u);
  BOOST_TEST(record.at("seed").as_uint64() == begun.seed);
  BOOST_TEST(record.at("steps").size() == begun.steps.size());
  BOOST_TEST(record.at("began_at").as_uint64() > 1'700'000'000u);
}

BOOST_AUTO_TEST_CASE(the_league_begins_without_the_teacher_and_with_both_gates) {
  const HydraRun run;
  RunWriter writer = run.writer();
  HydraRun::play_phase1(writer);
  transition(writer, to_distillation());
  HydraRun::play_phase2(writer);
  const TransitionResult begun =
      transition(writer, to_league(), {.master_seed = 7, .model = model()});
  BOOST_TEST((tensor_names(begun.start) == Names{"model_record/head", "model_record/stem"}));
  BOOST_TEST(
      (read_tensor(begun.start, "model_record/head") == numbered_tensor(DType::f32, {3, 2}, 3)));
  BOOST_TEST((std::ranges::find(begun.reset, "teacher_state_dict/stem") != begun.reset.end()));
  BOOST_TEST(begun.seed == seed_of(7, "phase3"));
  const Value roster = parse_json(read_file(run.pool() / "roster.json"));
  BOOST_TEST(roster.at("versions").size() == 0u);
  BOOST_REQUIRE(roster.at("anchors").size() == 2u);
  for (const Value& anchor : roster.at("anchors").elements()) {
    BOOST_TEST(anchor.at("mu").as_double() == 25.0);
    BOOST_TEST(anchor.at("sigma").as_double() == 25.0 / 3.0);
  }
  BOOST_TEST((step_names(begun) ==
              Names{"load", "check", "check", "carry", "reset", "anchor", "pool", "seed", "best"}));
}

BOOST_AUTO_TEST_CASE(a_pool_that_is_seeded_forgets_its_ratings_and_keeps_its_versions) {
  const HydraRun run;
  RunWriter writer = run.writer();
  HydraRun::play_phase1(writer);
  HydraRun::play_phase2(writer);
  HydraRun::save(writer, 500);
  Pool pool(writer);
  pool.add("phase3", 500, {.mu = 31, .sigma = 3});
  pool.rate(1, {.mu = 33, .sigma = 2}, 10, 1);
  transition(writer, to_league(), {.force = true});
  const PoolView view = pool.view();
  BOOST_REQUIRE(view.versions.size() == 1u);
  BOOST_TEST((view.versions[0].rating == Rating{}));
  BOOST_TEST(view.versions[0].games_played == 0u);
  BOOST_TEST(view.next_version == 2u);
}

BOOST_AUTO_TEST_CASE(without_its_record_a_phase_has_not_begun) {
  const HydraRun run;
  {
    RunWriter writer = run.writer();
    HydraRun::play_phase1(writer);
    transition(writer, to_distillation());
  }
  // As a crash before the last step leaves it.
  fs::remove(run.path() / "phase2" / "transition.json");
  fs::remove(run.path() / "phase2" / "transition.json.sha256");
  write_file(run.path() / "phase2" / "start.thalia", "of another try");
  RunWriter writer = run.writer();
  const TransitionResult again = transition(writer, to_distillation());
  BOOST_TEST(tensor_names(again.start).size() == 4u);
}

BOOST_AUTO_TEST_CASE(the_next_metric_of_the_phase_is_its_best) {
  const HydraRun run;
  RunWriter writer = run.writer();
  HydraRun::play_phase1(writer);
  HydraRun::play_phase2(writer);
  transition(writer, to_distillation(), {.force = true});
  BOOST_TEST(!run.run().best("phase2").has_value());
  BOOST_TEST(writer
                 .save("phase2", 400,
                       record_of({.seed = 4, .step = 400, .phase = 2, .has_teacher = true}),
                       {.metric = -5})
                 .is_best);
}

BOOST_AUTO_TEST_CASE(without_carries_all_is_carried_that_is_not_reset) {
  const HydraRun run;
  RunWriter writer = run.writer();
  HydraRun::play_phase1(writer);
  TransitionPlan plan{.from = "phase1", .to = "phase2", .gate = "bc_best"};
  plan.resets = {"rng_state", "*exp_avg", "config"};
  const TransitionResult begun = transition(writer, plan);
  BOOST_TEST((tensor_names(begun.start) ==
              Names{"model_record/head", "model_record/stem", "scheduler_record/last"}));
  BOOST_TEST(!begun.anchor.has_value());
  const Value metadata = metadata_of(begun.start);
  BOOST_TEST(metadata.find("config") == nullptr);
  BOOST_TEST(metadata.find("metrics") != nullptr);
}

BOOST_AUTO_TEST_CASE(records_of_python_are_carried_copied_and_reset_by_their_keys) {
  const HydraRun run;
  RunWriter writer = run.writer();
  StateSource state{
      .metadata_json =
          "{\"thalia_checkpoint\":{\"version\":1,\"tree\":{\"dict\":["
          "[\"model_record\",{\"ordered\":[[\"w\",{\"tensor\":\"model_record.w\"}]]}],"
          "[\"optimizer_record\",{\"dict\":[[\"m\",{\"tensor\":\"optimizer_record.m\"}],"
          "[\"lr\",0.5]]}],[\"scheduler_record\",{\"dict\":[[\"last\",3]]}],"
          "[\"rng_state\",\"abc\"],[\"global_step\",100],[\"phase\",1],"
          "[\"config\",{\"dict\":[]}],[\"metrics\",{\"dict\":[]}],"
          "[\"timestamp\",1],[\"checkpoint_version\",1]]}}}",
      .regions = {{.spec = {.name = "state"}, .tensors = {}}}};
  for (const char* const name : {"model_record.w", "optimizer_record.m"}) {
    const Tensor tensor = numbered_tensor(DType::f32, {2}, 1);
    state.regions[0].tensors.push_back(
        {.spec = TensorSpec::of(name, tensor.layout()), .load = [tensor] { return tensor; }});
  }
  writer.save("phase1", 100, state, {.metric = 1});
  writer.promote("phase1");
  const TransitionResult begun = transition(writer, to_distillation());
  BOOST_TEST(
      (tensor_names(begun.start) == Names{"state/model_record.w", "state/teacher_state_dict.w"}));
  BOOST_TEST(
      to_json(metadata_of(begun.start).at("thalia_checkpoint").at("tree")) ==
      "{\"dict\":[[\"model_record\",{\"ordered\":[[\"w\",{\"tensor\":\"model_record.w\"}]]}],"
      "[\"global_step\",100],[\"config\",{\"dict\":[]}],[\"checkpoint_version\",1],"
      "[\"teacher_state_dict\",{\"ordered\":[[\"w\",{\"tensor\":\"teacher_state_dict.w\"}]]}]]}");
}

BOOST_AUTO_TEST_SUITE_END()
