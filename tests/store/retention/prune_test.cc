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

std::filesystem::path file_of(const TemporaryRun& run, std::uint64_t step) {
  return run.phase() / run.run().file_name("train", step);
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

BOOST_AUTO_TEST_CASE(the_only_whole_checkpoint_is_never_deleted) {
  for (const RunConfig& config : {keeping_all(), keeping_all(bytes_config())}) {
    const TemporaryRun run(config);
    RunWriter writer = run.writer();
    for (std::uint64_t step = 1; step <= 4; ++step) save_step(writer, step);
    for (const std::uint64_t step : {2, 3, 4}) damage(file_of(run, step));
    const StorePruneOptions last{.policy = RetentionPolicy{.keep_last = 1}};
    const StorePruneOptions dry{.dry_run = true, .policy = last.policy};
    const std::string journal = read_file(run.phase() / "journal.jsonl");
    BOOST_TEST(writer.prune("train", dry).removed.size() == 2);
    BOOST_TEST(read_file(run.phase() / "journal.jsonl") == journal);
    const StorePruneResult result = writer.prune("train", last);
    BOOST_TEST(steps_of(run.run().list("train")) == (Steps{1, 4}), per_element());
    BOOST_TEST(result.decisions[0].reason == "the newest that is whole");
    // Once none is whole, nothing goes.
    damage(file_of(run, 1));
    writer.prune("train", last);
    BOOST_TEST(steps_of(run.run().list("train")) == (Steps{1, 4}), per_element());
    save_step(writer, 5);
    writer.prune("train", last);
    BOOST_TEST(steps_of(run.run().list("train")) == Steps{5}, per_element());
  }
}

BOOST_AUTO_TEST_CASE(what_is_damaged_is_not_one_of_those_that_are_kept) {
  for (RunConfig config : {small_config(), bytes_config()}) {
    config.phases[0].retention.keep_last = 2;
    const TemporaryRun run(config);
    std::vector<std::string> warnings;
    RunWriter writer = run.writer(
        {.on_warning = [&](const std::string& sentence) { warnings.push_back(sentence); }});
    save_step(writer, 1);
    save_step(writer, 2);
    damage(file_of(run, 2));
    save_step(writer, 3);
    BOOST_TEST(steps_of(run.run().list("train")) == (Steps{1, 2, 3}), per_element());
    BOOST_TEST(warnings.size() == 1u);
    BOOST_TEST(warnings[0].find("step00000002") != std::string::npos, warnings[0]);
    BOOST_TEST((run.run().list("train")[1].condition == Condition::damaged));
    save_step(writer, 4);
    BOOST_TEST(steps_of(run.run().list("train")) == (Steps{3, 4}), per_element());
    BOOST_TEST(warnings.size() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(what_is_unchanged_since_it_was_saved_is_not_read) {
  RunConfig config = small_config();
  config.phases[0].retention.keep_last = 2;
  const TemporaryRun run(config);
  RunWriter writer = run.writer();
  const auto condition = [&](std::size_t i) { return run.run().list("train")[i].condition; };
  save_step(writer, 1);
  BOOST_TEST((condition(0) == Condition::whole));
  save_step(writer, 2);
  // A file that says that it was not changed, and a disk that gives other bytes.
  const auto time = std::filesystem::last_write_time(file_of(run, 2));
  damage(file_of(run, 2));
  std::filesystem::last_write_time(file_of(run, 2), time);
  save_step(writer, 3);
  BOOST_TEST(steps_of(run.run().list("train")) == (Steps{2, 3}), per_element());
  // What is touched is read once, and then known again.
  std::filesystem::last_write_time(file_of(run, 3), time);
  BOOST_TEST((condition(1) == Condition::unknown));
  save_step(writer, 4);
  BOOST_TEST(steps_of(run.run().list("train")) == (Steps{3, 4}), per_element());
  BOOST_TEST((condition(0) == Condition::whole));
}

BOOST_AUTO_TEST_CASE(what_a_training_resumed_past_does_not_count_whatever_it_says_of_itself) {
  RunConfig config = small_config();
  config.phases[0].retention.keep_last = 2;
  const TemporaryRun run(config);
  RunWriter writer = run.writer();
  for (const std::uint64_t step : {10, 20}) save_step(writer, step);
  const auto time = std::filesystem::last_write_time(file_of(run, 20));
  damage(file_of(run, 20));
  std::filesystem::last_write_time(file_of(run, 20), time);
  BOOST_TEST(writer.resume("train").entry.step == 10u);
  BOOST_TEST(run.run().latest("train")->step == 10u);
  save_step(writer, 15);
  BOOST_TEST(steps_of(run.run().list("train")) == (Steps{10, 15}), per_element());
  // A step that is asked for is where the run goes on, too.
  BOOST_TEST(writer.resume("train", {.step = 10}).entry.step == 10u);
  save_step(writer, 12);
  BOOST_TEST(steps_of(run.run().list("train")) == (Steps{10, 12}), per_element());
  for (const std::uint64_t step : {10, 12}) damage(file_of(run, step));
  BOOST_CHECK_THROW(writer.resume("train"), NoValidCheckpointError);
  BOOST_TEST((run.run().list("train")[1].condition == Condition::damaged));
}

BOOST_AUTO_TEST_CASE(what_was_left_behind_stays_so_once_the_run_has_passed_it) {
  RunConfig config = small_config();
  config.phases[0].retention.keep_last = 4;
  const TemporaryRun run(config);
  for (const std::uint64_t step : {10, 20, 90, 100, 30, 95}) {
    RunWriter writer = run.writer();
    save_step(writer, step);
  }
  BOOST_TEST(steps_of(run.run().list("train")) == (Steps{10, 20, 30, 95}), per_element());
  RunWriter writer = run.writer();
  BOOST_TEST(writer.resume("train", {.step = 20}).entry.step == 20u);
  save_step(writer, 97);
  // 30 and 95 are of the branch that was left.
  damage(file_of(run, 97));
  BOOST_TEST(run.run().load("train").entry.step == 20u);
}

BOOST_AUTO_TEST_CASE(what_the_run_went_back_to_stays_the_latest_whatever_becomes_of_the_others) {
  const TemporaryRun run(keeping_all());
  {
    RunWriter writer = run.writer();
    for (const std::uint64_t step : {10, 20, 30}) save_step(writer, step);
    writer.resume("train", {.step = 10});
  }
  damage(file_of(run, 30));
  const RunWriter writer = run.writer();
  BOOST_TEST(run.run().latest("train")->step == 10u);
}

BOOST_AUTO_TEST_CASE(a_delta_on_a_damaged_file_does_not_count) {
  RunConfig config = keeping_all();
  config.deltas = {.kind = DeltaPolicy::Kind::every, .full_every = 3};
  const TemporaryRun run(config);
  RunWriter writer = run.writer();
  for (std::uint64_t step = 1; step <= 6; ++step) writer.save("train", step, brain_of(step));
  BOOST_TEST(run.run().list("train")[5].base == "ckpt_train_step00000005.thalia");
  damage(file_of(run, 4));
  // 1 2 3 are a chain, and 4 5 6 another.
  writer.prune("train", {.policy = RetentionPolicy{.keep_last = 1}});
  BOOST_TEST(steps_of(run.run().list("train")) == (Steps{1, 2, 3, 4, 5, 6}), per_element());
  writer.save("train", 7, brain_of(7));
  writer.prune("train", {.policy = RetentionPolicy{.keep_last = 1}});
  BOOST_TEST(steps_of(run.run().list("train")) == Steps{7}, per_element());
}

BOOST_AUTO_TEST_CASE(what_was_left_behind_and_is_whole_is_better_than_nothing) {
  const TemporaryRun run(keeping_all());
  RunWriter writer = run.writer();
  for (const std::uint64_t step : {10, 90, 100, 20}) save_step(writer, step);
  for (const std::uint64_t step : {10, 20}) damage(file_of(run, step));
  writer.prune("train", {.policy = RetentionPolicy{.keep_last = 1}});
  BOOST_TEST(steps_of(run.run().list("train")) == (Steps{20, 100}), per_element());
  BOOST_TEST(run.run().load("train").entry.step == 100u);
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
