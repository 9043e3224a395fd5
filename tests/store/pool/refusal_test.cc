// Transitions that are refused, and leave no trace.
#include "store/pool/runs.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(store_transition_refusal)

namespace {

namespace fs = std::filesystem;

}  // namespace

BOOST_AUTO_TEST_CASE(a_check_that_does_not_hold_leaves_no_trace) {
  const HydraRun run;
  RunWriter writer = run.writer();
  HydraRun::play_phase1(writer);
  HydraRun::play_phase2(writer, 0.125);
  const auto error =
      expect<UsageError>([&] { transition(writer, to_league()); }, ErrorCode::wrong_state);
  BOOST_TEST(error.context().field == "feature_dropout");
  BOOST_TEST(error.context().value == "0.125");
  BOOST_TEST(begun_files(run, "phase3").empty());
  BOOST_TEST(list_folder(run.pool()).empty());
}

BOOST_AUTO_TEST_CASE(checks_look_into_objects_and_lists) {
  const HydraRun run;
  RunWriter writer = run.writer();
  StateSource state = record_of({});
  Value metadata = parse_json(state.metadata_json);
  metadata["metrics"]["masks"] = parse_json("[0, 0.0, [0]]");
  metadata["thalia_checkpoint"] =
      parse_json("{\"version\":1,\"tree\":{\"dict\":[[\"dropout\",{\"dict\":[[\"p\",0]]}]]}}");
  state.metadata_json = to_json(metadata);
  writer.save("phase1", 100, state, {.metric = 1});
  writer.promote("phase1");
  TransitionPlan plan = to_distillation();
  const auto holds = [&](const char* key, double value) {
    plan.checks = {{.key = key, .value = value}};
    try {
      transition(writer, plan, {.force = true});
      return true;
    } catch (const UsageError& error) {
      BOOST_TEST((error.code() == ErrorCode::wrong_state));
      return false;
    }
  };
  BOOST_TEST(holds("metrics.masks", 0));
  BOOST_TEST(!holds("metrics.masks", 1));
  BOOST_TEST(holds("dropout.p", 0));
  BOOST_TEST(holds("checkpoint_version", 1));
  BOOST_TEST(!holds("metrics", 0));
  BOOST_TEST(!holds("metrics.none", 0));
}

BOOST_AUTO_TEST_CASE(a_model_that_differs_is_refused_with_all_that_differs) {
  const HydraRun run;
  RunWriter writer = run.writer();
  HydraRun::play_phase1(writer);
  const auto error = expect<UsageError>(
      [&] {
        transition(writer, to_distillation(),
                   {.model = {{"stem", {4, 4}, DType::bf16}, {"neck", {1}, DType::f32}}});
      },
      ErrorCode::shape_mismatch);
  BOOST_TEST(
      says(ErrorCode::shape_mismatch, "model_record/stem", "neck", "model_record/head")(error));
  BOOST_TEST(begun_files(run, "phase2").empty());
}

BOOST_AUTO_TEST_CASE(a_gate_that_is_damaged_ends_it) {
  const HydraRun run;
  RunWriter writer = run.writer();
  HydraRun::play_phase1(writer);
  const fs::path gate = run.path() / "gates" / "bc_best.thalia";
  const std::string whole = read_file(gate);
  std::string bytes = whole;
  bytes[bytes.size() / 2] ^= 1;
  write_file(gate, bytes);
  expect<IntegrityError>([&] { transition(writer, to_distillation()); },
                         ErrorCode::checksum_mismatch);
  write_file(gate, whole);
  fs::remove(gate.string() + ".sha256");
  expect<IntegrityError>([&] { transition(writer, to_distillation()); },
                         ErrorCode::checksum_mismatch);
  fs::remove(gate);
  expect<UsageError>([&] { transition(writer, to_distillation()); }, ErrorCode::not_found);
  BOOST_TEST(begun_files(run, "phase2").empty());
}

BOOST_AUTO_TEST_CASE(a_pool_anchor_has_to_be_a_whole_gate_of_the_pool) {
  const HydraRun run;
  RunWriter writer = run.writer();
  HydraRun::play_phase1(writer);
  HydraRun::play_phase2(writer);
  TransitionPlan plan = to_league();
  plan.pool_anchors.push_back("league_best");
  expect<UsageError>([&] { transition(writer, plan); }, ErrorCode::not_found);
  write_file(run.path() / "gates" / "bc_best.thalia", "torn");
  expect<IntegrityError>([&] { transition(writer, to_league()); }, ErrorCode::checksum_mismatch);
  BOOST_TEST(begun_files(run, "phase3").empty());
}

BOOST_AUTO_TEST_CASE(a_phase_begins_once_unless_it_is_forced) {
  const HydraRun run;
  RunWriter writer = run.writer();
  HydraRun::play_phase1(writer);
  transition(writer, to_distillation());
  expect<UsageError>([&] { transition(writer, to_distillation()); }, ErrorCode::exists);
  writer.promote("phase1", {.step = 100, .force = true});
  const TransitionResult again = transition(writer, to_distillation(), {.force = true});
  BOOST_TEST(
      (read_tensor(again.start, "model_record/stem") == numbered_tensor(DType::bf16, {4, 3}, 1)));
}

BOOST_AUTO_TEST_CASE(a_phase_that_has_saved_has_begun) {
  const HydraRun run;
  RunWriter writer = run.writer();
  HydraRun::play_phase1(writer);
  HydraRun::play_phase2(writer);
  expect<UsageError>([&] { transition(writer, to_distillation()); }, ErrorCode::exists);
  BOOST_TEST(run.run().best("phase2").has_value());
}

BOOST_AUTO_TEST_CASE(patterns_and_copies_that_fit_nothing_are_told_of) {
  const HydraRun run;
  RunWriter writer = run.writer();
  HydraRun::play_phase1(writer);
  const auto refused = [&](auto change) {
    TransitionPlan plan = to_distillation();
    change(plan);
    expect<UsageError>([&] { transition(writer, plan); }, ErrorCode::not_found);
  };
  refused([](TransitionPlan& plan) { plan.carries = {"modle_record"}; });
  refused([](TransitionPlan& plan) { plan.resets.push_back("optimiser_record"); });
  refused([](TransitionPlan& plan) { plan.anchor = {"policy"}; });
  refused([](TransitionPlan& plan) { plan.copies[0].from = "student"; });
  refused([](TransitionPlan& plan) { plan.from = "phase0"; });
  refused([](TransitionPlan& plan) { plan.to = "phase4"; });
  refused([](TransitionPlan& plan) { plan.gate = "rl_best"; });
  BOOST_TEST(begun_files(run, "phase2").empty());
}

BOOST_AUTO_TEST_CASE(a_copy_does_not_take_the_place_of_what_is_carried) {
  const HydraRun run;
  RunWriter writer = run.writer();
  HydraRun::play_phase1(writer);
  TransitionPlan plan = to_distillation();
  plan.carries.push_back("optimizer_record");
  std::erase(plan.resets, "optimizer_record");
  plan.copies = {{.from = "model_record", .to = "optimizer_record"}};
  expect<UsageError>([&] { transition(writer, plan); }, ErrorCode::duplicate);
  BOOST_TEST(begun_files(run, "phase2").empty());
}

BOOST_AUTO_TEST_CASE(a_run_of_other_files_has_no_transitions) {
  RunConfig config = hydra_config();
  config.extension = "pt";
  config.required_keys.clear();
  const HydraRun run(config);
  RunWriter writer = run.writer();
  writer.save_bytes("phase1", 100, bytes_of("weights"), {.metric = 1});
  writer.promote("phase1");
  expect<UsageError>([&] { transition(writer, to_distillation()); }, ErrorCode::wrong_state);
}

BOOST_AUTO_TEST_SUITE_END()
