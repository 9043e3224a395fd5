// Runs whose deltas are turned: checkpoints load as before, and what the run knows of them stays.
#include <map>
#include <optional>

#include "boost_test.h"
#include "store/runs.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/store.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(store_rebase)

namespace {

namespace fs = std::filesystem;

using Depths = std::map<std::uint64_t, unsigned>;

RunConfig chained(std::optional<std::uint32_t> keep_last = std::nullopt) {
  RunConfig config = small_config();
  config.phases[0].metric = Metric{.name = "loss", .direction = Direction::min};
  config.phases[0].retention = {.keep_last = keep_last};
  config.deltas = {.kind = DeltaPolicy::Kind::every, .full_every = 10};
  return config;
}

void save_steps(RunWriter& writer, std::initializer_list<std::uint64_t> steps) {
  for (const std::uint64_t step : steps)
    writer.save("train", step, brain_of(step), {.metric = step == 2 ? 0.125 : 0.5});
}

Depths depths_of(const Run& run) {
  Depths depths;
  for (const CheckpointEntry& entry : run.list("train")) depths[entry.step] = entry.depth;
  return depths;
}

// Every checkpoint loads with its digest and is what was saved, as the listing says it is.
void check_run(const Run& run) {
  for (const CheckpointEntry& entry : run.list("train")) {
    BOOST_TEST_CONTEXT(entry.file) {
      std::string warned;
      const LoadedCheckpoint loaded = run.load(
          "train",
          {.step = entry.step, .on_warning = [&](const std::string& text) { warned = text; }});
      BOOST_TEST(warned == "");
      BOOST_TEST((BrainCheckpoint::load(loaded.path).regions == brain_of(entry.step).regions));
      BOOST_TEST(loaded.chain.depth() == entry.depth);
      BOOST_TEST(entry.bytes == file_bytes(loaded.path));
      BOOST_TEST(entry.metric.value() == (entry.step == 2 ? 0.125 : 0.5));
      BOOST_TEST((entry.condition == Condition::whole));
      if (entry.is_delta()) BOOST_TEST(loaded.chain.paths()[1].filename().string() == entry.base);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_newest_is_full_and_what_is_known_of_checkpoints_stays) {
  const TemporaryRun run(chained());
  RunWriter writer = run.writer();
  save_steps(writer, {1, 2, 3, 4});
  const std::vector<CheckpointEntry> before = run.run().list("train");
  const RebaseResult result = writer.rebase("train");
  BOOST_TEST(result.files.size() == 4u);
  BOOST_TEST((depths_of(run.run()) == Depths{{1, 3}, {2, 2}, {3, 1}, {4, 0}}));
  check_run(run.run());
  const std::vector<CheckpointEntry> after = run.run().list("train");
  for (std::size_t i = 0; i < 4; ++i) BOOST_TEST(after[i].saved_at == before[i].saved_at);
  BOOST_TEST(run.run().latest("train")->step == 4u);
  BOOST_TEST(run.run().best("train")->step == 2u);
  BOOST_TEST(writer.rebase("train").files.empty());
  // The next one is a delta of the newest.
  save_steps(writer, {5});
  BOOST_TEST(depths_of(run.run()).at(5) == 1u);
  check_run(run.run());
  writer.rebase("train");
  BOOST_TEST((depths_of(run.run()) == Depths{{1, 4}, {2, 3}, {3, 2}, {4, 1}, {5, 0}}));
  check_run(run.run());
}

BOOST_AUTO_TEST_CASE(what_was_left_behind_keeps_its_base) {
  const TemporaryRun run(chained());
  RunWriter writer = run.writer();
  save_steps(writer, {1, 2, 5, 6});
  writer.resume("train", {.step = 2});
  save_steps(writer, {3, 4});
  writer.rebase("train");
  BOOST_TEST((depths_of(run.run()) == Depths{{1, 3}, {2, 2}, {3, 1}, {4, 0}, {5, 3}, {6, 4}}));
  check_run(run.run());
  for (const CheckpointEntry& entry : run.run().list("train"))
    BOOST_TEST(entry.left_behind == (entry.step > 4));
  BOOST_TEST(run.run().load("train").entry.step == 4u);
}

BOOST_AUTO_TEST_CASE(retention_removes_the_oldest_without_writing_anything) {
  const TemporaryRun run(chained());
  RunWriter writer = run.writer();
  save_steps(writer, {1, 2, 3, 4});
  writer.rebase("train");
  // The best stays, with what it needs.
  const StorePruneResult pruned =
      writer.prune("train", {.policy = RetentionPolicy{.keep_last = 2}});
  BOOST_TEST(pruned.removed.size() == 1u);
  BOOST_TEST((depths_of(run.run()) == Depths{{2, 2}, {3, 1}, {4, 0}}));
  check_run(run.run());
}

BOOST_AUTO_TEST_CASE(saves_of_a_small_run_go_on_after_each_turn) {
  const TemporaryRun run(chained(3));
  RunWriter writer = run.writer();
  for (std::uint64_t step = 1; step <= 9; ++step) {
    save_steps(writer, {step});
    if (step % 2 == 0) writer.rebase("train");
    check_run(run.run());
  }
  BOOST_TEST(run.run().best("train")->step == 2u);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_that_would_be_too_deep_is_full) {
  const TemporaryRun run(chained());
  RunWriter writer = run.writer();
  save_steps(writer, {1, 2, 3, 4});
  writer.rebase("train", {.max_depth = 1});
  BOOST_TEST((depths_of(run.run()) == Depths{{1, 1}, {2, 0}, {3, 1}, {4, 0}}));
  check_run(run.run());
  BOOST_CHECK_THROW(writer.rebase("train", {.max_depth = 0}), UsageError);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_read_ends_it_before_it_begins) {
  const TemporaryRun run(chained());
  RunWriter writer = run.writer();
  save_steps(writer, {1, 2, 3});
  const fs::path base = run.run().path_of(run.run().list("train")[1]);
  const fs::path elsewhere = run.path() / "elsewhere";
  fs::rename(base, elsewhere);
  BOOST_CHECK_THROW(writer.rebase("train"), MissingBaseError);
  fs::rename(elsewhere, base);
  BOOST_TEST((depths_of(run.run()) == Depths{{1, 0}, {2, 1}, {3, 2}}));
  check_run(run.run());
}

BOOST_AUTO_TEST_CASE(a_run_of_other_files_has_nothing_to_turn) {
  const TemporaryRun run(bytes_config());
  RunWriter writer = run.writer();
  BOOST_CHECK_THROW(writer.rebase("train"), UsageError);
}

// As a crash leaves it: the journal says that the file changes, and it did or did not.
BOOST_AUTO_TEST_CASE(the_next_writer_finds_out_what_a_crash_left) {
  for (const bool was_written : {false, true}) {
    const TemporaryRun run(chained());
    std::string journal;
    {
      RunWriter writer = run.writer();
      save_steps(writer, {1, 2, 3});
      journal = read_file(run.phase() / "journal.jsonl");
      if (was_written) writer.rebase("train");
    }
    for (const CheckpointEntry& entry : Run::open(run.path()).list("train"))
      journal += "{\"rewriting\":\"" + entry.file + "\",\"at\":1}\n";
    write_file(run.phase() / "journal.jsonl", journal);
    // Until then the metric is known.
    BOOST_TEST(run.run().list("train")[1].metric.value() == 0.125);
    const RunWriter writer = run.writer();
    BOOST_TEST((depths_of(run.run()) ==
                (was_written ? Depths{{1, 2}, {2, 1}, {3, 0}} : Depths{{1, 0}, {2, 1}, {3, 2}})));
    BOOST_TEST(run.run().latest("train")->step == 3u);
    BOOST_TEST(run.run().best("train")->step == 2u);
    for (const CheckpointEntry& entry : run.run().list("train"))
      BOOST_TEST(entry.metric.has_value());
  }
}

BOOST_AUTO_TEST_SUITE_END()
