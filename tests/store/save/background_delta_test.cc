// Deltas that are saved beside the training, and what may not happen to their bases meanwhile.
#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "boost_test.h"
#include "container/background/gate.h"
#include "store/runs.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;
using boost::test_tools::per_element;
using Depths = std::vector<unsigned>;
using Steps = std::vector<std::uint64_t>;

BOOST_AUTO_TEST_SUITE(store_background_deltas)

namespace {

RunConfig delta_config(unsigned full_every) {
  RunConfig config = small_config();
  config.phases[0].retention.keep_last = std::nullopt;
  config.deltas = {.kind = DeltaPolicy::Kind::every, .full_every = full_every};
  return config;
}

Depths depths_of(const Run& run) {
  Depths depths;
  for (const CheckpointEntry& entry : run.list("train")) depths.push_back(entry.depth);
  return depths;
}

std::vector<float> weights_of(std::uint64_t step) {
  std::vector<float> weights(128 * 128, 0.5F);
  weights[step] = 2;
  return weights;
}

void declare(Writer& file, const std::vector<float>& weights) {
  file.add_tensor(file.add_region({.name = "r"}), {.name = "w", .shape = {128, 128}},
                  std::as_bytes(std::span<const float>(weights)));
}

SaveHandle<StoredCheckpoint> begin(RunWriter& run, AsyncSaver& saver, std::uint64_t step,
                                   SaveOptions options = {}, bool replace = false) {
  std::vector<float> weights = weights_of(step);
  Writer file = run.new_checkpoint("train", step, options, replace);
  declare(file, weights);
  SaveHandle<StoredCheckpoint> handle =
      run.save_async(saver, std::move(file), {.metric = static_cast<double>(step)});
  weights.assign(weights.size(), -1);  // a copy was taken
  return handle;
}

void check(const Run& run, std::uint64_t step) {
  const LoadedCheckpoint loaded = run.load("train", {.step = step});
  const Tensor read = loaded.chain.read(loaded.chain.reader().tensor("w"));
  const auto values = read.as<float>();
  const std::vector<float> wanted = weights_of(step);
  BOOST_TEST(std::vector<float>(values.begin(), values.end()) == wanted, per_element());
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_a_writer_has_declared_becomes_a_delta_in_the_background) {
  const TemporaryRun run(delta_config(3));
  RunWriter writer = run.writer();
  AsyncSaver saver;
  for (std::uint64_t step = 1; step <= 5; ++step) {
    const StoredCheckpoint stored = begin(writer, saver, step).wait();
    BOOST_TEST(stored.entry.depth == (step - 1) % 3);
    BOOST_TEST(stored.entry.metric.value() == static_cast<double>(step));
    BOOST_TEST(stored.entry.has_digest);
    check(run.run(), step);
  }
  for (const std::string& name : list_folder(run.phase()))
    BOOST_TEST(name.find("thalia-tmp") == std::string::npos);
  Writer streamed = writer.new_checkpoint("train", 9);
  streamed.add_tensor(streamed.add_region({.name = "r"}), {.name = "late", .shape = {4}});
  BOOST_CHECK_EXCEPTION(writer.save_async(saver, std::move(streamed)), UsageError,
                        says(ErrorCode::bad_argument, "late"));
  Writer other(run.path() / "elsewhere.thalia");
  BOOST_CHECK_EXCEPTION(writer.save_async(saver, std::move(other)), UsageError,
                        says(ErrorCode::bad_argument, "new_checkpoint"));
}

BOOST_AUTO_TEST_CASE(a_borrowed_state_is_read_once_it_is_ready) {
  const TemporaryRun run(delta_config(3));
  RunWriter writer = run.writer();
  AsyncSaver saver;
  begin(writer, saver, 1).wait();
  std::vector<float> weights(128 * 128, 0.5F);
  Writer file = writer.new_checkpoint("train", 2);
  declare(file, weights);
  const auto handle = writer.save_async(saver, std::move(file), {}, Snapshot::borrowed,
                                        [&] { std::ranges::copy(weights_of(2), weights.begin()); });
  BOOST_TEST(handle.wait().entry.depth == 1U);
  check(run.run(), 2);
}

BOOST_AUTO_TEST_CASE(a_delta_that_is_too_dear_becomes_a_full_file) {
  RunConfig config = delta_config(3);
  config.deltas = {.kind = DeltaPolicy::Kind::cost, .max_cost = 1.01};
  const TemporaryRun run(config);
  RunWriter writer = run.writer();
  AsyncSaver saver;
  for (std::uint64_t step = 1; step <= 3; ++step) {
    const Sample sample = state_of_step(step);
    begin(writer, saver, step, {.compression = {.codec = Codec::none}}).wait();
    check(run.run(), step);
  }
  for (const CheckpointEntry& entry : run.run().list("train")) BOOST_TEST(entry.has_digest);
}

BOOST_AUTO_TEST_CASE(a_base_that_is_damaged_gives_way_to_a_full_file) {
  const TemporaryRun run(delta_config(4));
  std::vector<std::string> warnings;
  std::mutex mutex;
  RunWriter writer = run.writer({.on_warning = [&](const std::string& sentence) {
    const std::lock_guard lock(mutex);
    warnings.push_back(sentence);
  }});
  AsyncSaver saver;
  for (std::uint64_t step = 1; step <= 6; ++step) {
    const bool in_background = step != 6;
    if (step == 3 || step == 6) {
      // At its end, and so that it opens no more.
      std::filesystem::resize_file(run.run().load("train").path, 100);
    } else if (step == 5) {
      damage(run.run().load("train").path);
    }
    if (in_background) {
      begin(writer, saver, step).wait();
    } else {
      const std::vector<float> weights = weights_of(step);
      Writer file = writer.new_checkpoint("train", step);
      declare(file, weights);
      writer.save(file);
    }
    check(run.run(), step);
  }
  // What is of another size is nothing that the journal knows.
  BOOST_TEST(depths_of(run.run()) == (Depths{0, 0, 0, 1, 0, 0}), per_element());
  const std::lock_guard lock(mutex);
  BOOST_TEST(warnings.size() == 3U);
  for (const std::string& warning : warnings)
    BOOST_TEST(warning.find("a delta has no base") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_brain_whose_base_is_damaged_fails_once) {
  const TemporaryRun run(delta_config(4));
  RunWriter writer = run.writer();
  AsyncSaver saver;
  writer.save_async(saver, "train", 1, brain_of(1)).wait();
  damage(run.run().load("train").path);
  BOOST_CHECK_THROW(writer.save_async(saver, "train", 2, brain_of(2)).wait(), IntegrityError);
  BOOST_TEST(writer.save_async(saver, "train", 3, brain_of(3)).wait().entry.depth == 0U);
  BOOST_TEST(writer.save_async(saver, "train", 4, brain_of(4)).wait().entry.depth == 1U);
  // In the foreground the state is there for a full file.
  damage(run.run().path_of(run.run().list("train").back()));
  BOOST_TEST(writer.save("train", 5, brain_of(5)).entry.depth == 0U);
}

BOOST_AUTO_TEST_CASE(the_base_of_a_save_under_way_stays_as_it_is) {
  RunConfig config = delta_config(4);
  config.phases[0].retention = {.keep_last = 1, .needed_bases = NeededBases::squash};
  const TemporaryRun run(config);
  RunWriter writer = run.writer();
  AsyncSaver saver;
  begin(writer, saver, 1).wait();
  begin(writer, saver, 2).wait();
  Gate gate;
  SaveOptions held;
  held.work.progress = gate.progress();
  const SaveHandle<StoredCheckpoint> third = begin(writer, saver, 3, held);
  gate.wait_until_reached();
  // What it is based on is neither removed nor written anew, nor replaced.
  writer.prune("train");
  BOOST_TEST(run.run().list("train").size() == 2U);
  const std::vector<float> weights = weights_of(50);
  for (const std::uint64_t step : {1U, 2U}) {
    BOOST_CHECK_EXCEPTION(writer.new_checkpoint("train", step, {}, true), UsageError,
                          says(ErrorCode::wrong_state, "under way"));
  }
  gate.open();
  const unsigned depth = third.wait().entry.depth;
  check(run.run(), 3);
  BOOST_TEST(depth > 0U);
  // The first is the best.
  BOOST_TEST(steps_of(run.run().list("train")) == (Steps{1, 3}), per_element());
  BOOST_TEST(depths_of(run.run()) == (Depths{0, 0}), per_element());
  Writer again = writer.new_checkpoint("train", 3, {}, true);
  declare(again, weights);
  writer.commit(std::move(again));
  BOOST_TEST(depths_of(run.run()) == (Depths{0, 0}), per_element());
}

BOOST_AUTO_TEST_CASE(a_step_that_is_saved_again_is_no_delta_of_itself) {
  const TemporaryRun run(delta_config(4));
  RunWriter writer = run.writer();
  AsyncSaver saver;
  for (const std::uint64_t step : {1U, 2U, 3U}) begin(writer, saver, step).wait();
  // What is based on it becomes full first.
  BOOST_TEST(begin(writer, saver, 2, {}, true).wait().entry.depth == 0U);
  for (const std::uint64_t step : {1U, 2U, 3U}) check(run.run(), step);
  BOOST_CHECK_EXCEPTION(begin(writer, saver, 2), UsageError, has_code(ErrorCode::exists));
}

BOOST_AUTO_TEST_SUITE_END()
