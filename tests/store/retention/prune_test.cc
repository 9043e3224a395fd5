#include "boost_test.h"
#include "store/runs.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;
using boost::test_tools::per_element;
using Steps = std::vector<std::uint64_t>;
using Fate = RetentionDecision::Fate;

BOOST_AUTO_TEST_SUITE(store_prune)

namespace {

RunConfig keeping_all(RunConfig config = small_config()) {
  config.phases[0].retention = {.keep_last = std::nullopt};
  return config;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_dry_run_explains_and_changes_nothing) {
  const TemporaryRun run(keeping_all());
  RunWriter writer = run.writer();
  for (std::uint64_t step = 1; step <= 5; ++step) save_step(writer, step);
  const std::vector<std::string> before = list_folder(run.phase());
  const RetentionPolicy policy{.keep_last = 2};
  const StorePruneResult dry = writer.prune("train", {.dry_run = true, .policy = policy});
  BOOST_TEST(list_folder(run.phase()) == before, per_element());
  BOOST_TEST(dry.removed.size() == 3);
  BOOST_TEST(dry.decisions[0].reason == "beyond the newest 2");
  BOOST_TEST(dry.decisions[3].reason == "one of the newest 2");
  const StorePruneResult done = writer.prune("train", {.policy = policy});
  BOOST_TEST(done.removed == dry.removed, per_element());
  BOOST_TEST(done.freed_bytes == dry.freed_bytes);
  BOOST_TEST(steps_of(run.run().list("train")) == (Steps{4, 5}), per_element());
  for (const std::string& name : list_folder(run.phase()))
    BOOST_TEST(name.find("step00000003") == std::string::npos, name);
}

BOOST_AUTO_TEST_CASE(a_save_keeps_what_the_policy_says_and_the_best) {
  RunConfig config = small_config();
  config.phases[0].retention.keep_last = 3;
  const TemporaryRun run(config);
  RunWriter writer = run.writer();
  for (std::uint64_t step = 1; step <= 6; ++step) {
    const StoredCheckpoint stored = save_step(writer, step, {.metric = step == 2 ? 0.1 : 1.0});
    BOOST_TEST(stored.is_best == (step <= 2));
  }
  BOOST_TEST(steps_of(run.run().list("train")) == (Steps{2, 5, 6}), per_element());
}

BOOST_AUTO_TEST_CASE(the_only_valid_checkpoint_is_never_deleted) {
  for (const RunConfig& config : {keeping_all(), keeping_all(bytes_config())}) {
    const TemporaryRun run(config);
    RunWriter writer = run.writer();
    for (std::uint64_t step = 1; step <= 4; ++step) save_step(writer, step);
    const std::string ending = "." + config.extension;
    for (const char* const step : {"2", "3", "4"})
      damage(run.phase() / ("ckpt_train_step0000000" + (step + ending)));
    const StorePruneResult result =
        writer.prune("train", {.policy = RetentionPolicy{.keep_last = 2}});
    BOOST_TEST(steps_of(run.run().list("train")) == (Steps{1, 3, 4}), per_element());
    BOOST_TEST(result.decisions[0].reason == "the only valid one");
    // Once none is valid, nothing goes.
    damage(run.phase() / ("ckpt_train_step00000001" + ending));
    writer.prune("train", {.policy = RetentionPolicy{.keep_last = 1}});
    BOOST_TEST(steps_of(run.run().list("train")) == (Steps{1, 3, 4}), per_element());
  }
}

BOOST_AUTO_TEST_CASE(an_open_file_survives_its_removal) {
  const TemporaryRun run(keeping_all());
  RunWriter writer = run.writer();
  save_step(writer, 1);
  const LoadedCheckpoint first = run.run().load("train");
  save_step(writer, 2);
  writer.prune("train", {.policy = RetentionPolicy{.keep_last = 1}});
  BOOST_TEST(!std::filesystem::exists(first.path));
  const Sample sample = state_of_step(1);
  const Tensor bias = first.chain.read(first.chain.reader().tensor("b"));
  BOOST_TEST(text_of(bias.bytes()) == text_of(sample.regions[0].tensors[1].payload));
}

BOOST_AUTO_TEST_CASE(a_delta_whose_base_goes_becomes_a_full_file_of_the_same_state) {
  RunConfig config = keeping_all();
  config.deltas = {.kind = DeltaPolicy::Kind::every, .full_every = 10};
  const TemporaryRun run(config);
  RunWriter writer = run.writer();
  const TemporaryFolder files;
  for (std::uint64_t step = 1; step <= 4; ++step) {
    save(files / "f.thalia", state_of_step(step));
    writer.save_file("train", step, files / "f.thalia");
  }
  BOOST_TEST(run.run().list("train")[3].depth == 3);
  const RetentionPolicy policy{.keep_last = 2, .needed_bases = NeededBases::squash};
  const StorePruneResult result = writer.prune("train", {.policy = policy});
  BOOST_TEST(result.removed.size() == 2);
  const std::vector<CheckpointEntry> entries = run.run().list("train");
  BOOST_TEST(steps_of(entries) == (Steps{3, 4}), per_element());
  for (const CheckpointEntry& entry : entries) {
    BOOST_TEST(!entry.is_delta());
    const LoadedCheckpoint loaded = run.run().load("train", {.step = entry.step});
    const Tensor bias = loaded.chain.read(loaded.chain.reader().tensor("b"));
    BOOST_TEST(text_of(bias.bytes()) ==
               text_of(state_of_step(entry.step).regions[0].tensors[1].payload));
  }
}

BOOST_AUTO_TEST_CASE(what_is_based_on_a_file_that_is_replaced_becomes_full_first) {
  RunConfig config = keeping_all();
  config.deltas = {.kind = DeltaPolicy::Kind::every, .full_every = 10};
  const TemporaryRun run(config);
  RunWriter writer = run.writer();
  for (std::uint64_t step = 1; step <= 4; ++step) writer.save("train", step, brain_of(step));
  writer.save("train", 2, brain_of(7), {.replace = true});
  const std::vector<CheckpointEntry> entries = run.run().list("train");
  BOOST_TEST(entries[1].depth == 0);
  BOOST_TEST(entries[2].depth == 0);
  BOOST_TEST(entries[3].depth == 0);
  for (const std::uint64_t step : {3, 4}) {
    const LoadedCheckpoint loaded = run.run().load("train", {.step = step});
    BOOST_TEST((BrainCheckpoint::load(loaded.path).regions == brain_of(step).regions));
  }
  BOOST_TEST(run.run().load("train").entry.step == 2);
}

BOOST_AUTO_TEST_CASE(a_long_journal_is_written_anew_with_what_is_there) {
  RunConfig config = keeping_all(bytes_config());
  config.phases[0].retention.keep_last = 2;
  const TemporaryRun run(config);
  std::string old;
  for (int i = 0; i < 2'000; ++i) old += "{\"removed\":\"a\",\"reason\":\"old\",\"at\":1}\n";
  write_file(run.phase() / "journal.jsonl", old);
  RunWriter writer = run.writer();
  for (std::uint64_t step = 1; step <= 3; ++step) save_step(writer, step, {.metric = 1.0});
  BOOST_TEST(read_file(run.phase() / "journal.jsonl").size() < 2'000);
  for (const CheckpointEntry& entry : run.run().list("train"))
    BOOST_TEST(entry.metric.value() == 1.0);
}

BOOST_AUTO_TEST_SUITE_END()
