// Saves through the store that run beside the training.
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "boost_test.h"
#include "container/background/gate.h"
#include "store/runs.h"
#include "support/errors.h"
#include "support/fault.h"

using namespace thalia;
using namespace thalia::test;
using boost::test_tools::per_element;
using Steps = std::vector<std::uint64_t>;

BOOST_AUTO_TEST_SUITE(store_background)

namespace {

RunConfig delta_config() {
  RunConfig config = small_config();
  config.deltas = {.kind = DeltaPolicy::Kind::every, .full_every = 4};
  return config;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_save_in_the_background_ends_as_one_in_the_foreground) {
  const TemporaryRun run(delta_config());
  RunWriter writer = run.writer();
  AsyncSaver saver;
  for (std::uint64_t step = 1; step <= 6; ++step) {
    BrainState brain = brain_of(step);
    const SaveHandle<StoredCheckpoint> handle =
        writer.save_async(saver, "train", step, brain, {.metric = 1.0 / static_cast<double>(step)});
    brain.regions.at("model").weights()["b"] = Tensor::zeros(DType::f32, {64});
    const StoredCheckpoint stored = handle.wait();
    BOOST_TEST(handle.done());
    BOOST_TEST(stored.is_best);
    BOOST_TEST(stored.entry.depth == (step - 1) % 4);
    BOOST_TEST(stored.entry.has_digest);
    const LoadedCheckpoint loaded = run.run().load("train");
    BOOST_TEST(loaded.entry.step == step);
    BOOST_TEST((BrainCheckpoint::load(loaded.path).regions == brain_of(step).regions));
  }
}

BOOST_AUTO_TEST_CASE(a_writer_is_committed_in_the_background) {
  const TemporaryRun run;
  RunWriter writer = run.writer();
  AsyncSaver saver;
  const Sample sample = state_of_step(3);
  Writer file = writer.new_checkpoint("train", 3, steady_options());
  declare(file, sample);
  const SaveHandle<StoredCheckpoint> handle =
      writer.commit_async(saver, std::move(file), {.metric = 1.0});
  BOOST_TEST(handle.wait_for(std::chrono::minutes(10)));
  BOOST_TEST(!handle.error());
  BOOST_TEST(handle.wait().entry.step == 3);
  BOOST_TEST(run.run().load("train").entry.metric.value() == 1.0);
  Writer other(run.path() / "elsewhere.thalia");
  BOOST_CHECK_EXCEPTION(writer.commit_async(saver, std::move(other)), UsageError,
                        says(ErrorCode::bad_argument, "new_checkpoint"));
}

BOOST_AUTO_TEST_CASE(the_writer_waits_for_saves_at_its_end) {
  const TemporaryRun run(delta_config());
  {
    AsyncSaver saver({.when_busy = WhenBusy::queue, .max_unfinished = 10});
    RunWriter writer = run.writer();
    for (std::uint64_t step = 1; step <= 8; ++step)
      writer.save_async(saver, "train", step, brain_of(step));
  }
  BOOST_TEST(steps_of(run.run().list("train")) == (Steps{1, 2, 3, 4, 5, 6, 7, 8}), per_element());
  for (std::uint64_t step = 1; step <= 8; ++step) run.run().load("train", {.step = step});
}

BOOST_AUTO_TEST_CASE(a_callback_may_end_the_writer) {
  for (const bool in_publisher : {true, false}) {
    const TemporaryRun run(delta_config());
    AsyncSaver saver({.when_busy = WhenBusy::queue, .max_unfinished = 10});
    std::unique_ptr<RunWriter> writer;
    std::mutex all_are_begun;
    RunWriterOptions options{.durability = Durability::none};
    // The first step of a save that its own thread takes once the file is there.
    options.on_step = [&](SaveStep step) {
      if (in_publisher && step == SaveStep::journal) writer.reset();
    };
    writer = std::make_unique<RunWriter>(run.path(), options);
    BrainSaveOptions save;
    save.save.work.progress = [&](std::uint64_t, std::uint64_t) {
      const std::lock_guard wait(all_are_begun);
      if (!in_publisher) writer.reset();
    };
    std::vector<SaveHandle<StoredCheckpoint>> saves;
    {
      const std::lock_guard begin(all_are_begun);
      for (std::uint64_t step = 1; step <= 3; ++step)
        saves.push_back(
            writer->save_async(saver, "train", step, brain_of(step), {.metric = 1.0}, save));
    }
    for (const SaveHandle<StoredCheckpoint>& one : saves) one.wait();
    BOOST_TEST(!writer);
    BOOST_TEST(steps_of(run.run().list("train")) == (Steps{1, 2, 3}), per_element());
    saver.wait_all();
  }
}

BOOST_AUTO_TEST_CASE(a_forked_child_ends_nothing_of_its_parents) {
  const TemporaryRun run(delta_config());
  AsyncSaver saver;
  auto writer = std::make_unique<RunWriter>(run.path(), RunWriterOptions{});
  writer->save_async(saver, "train", 1, brain_of(1)).wait();
  const Outcome outcome = run_with_faults({}, [&] { writer.reset(); });
  BOOST_TEST((outcome.kind == Outcome::Kind::returned), outcome.message);
  for (const std::function<void()>& change : std::initializer_list<std::function<void()>>{
           [&] { writer->save("train", 2, brain_of(2)); },
           [&] { writer->prune("train"); },
           [&] { writer->promote("train"); },
           [&] { writer->reset_best("train"); },
       }) {
    const Outcome refused = run_with_faults({}, change);
    BOOST_TEST(
        refused.message.find("the writer of the run belongs to process") != std::string::npos,
        refused.message);
  }
  writer->save_async(saver, "train", 2, brain_of(2)).wait();
  BOOST_TEST(steps_of(run.run().list("train")) == (Steps{1, 2}), per_element());
}

BOOST_AUTO_TEST_CASE(the_base_of_a_save_under_way_is_not_pruned) {
  RunConfig config = delta_config();
  config.phases[0].retention.keep_last = 1;
  const TemporaryRun run(config);
  RunWriter writer = run.writer();
  AsyncSaver saver({.when_busy = WhenBusy::queue, .max_unfinished = 10});
  std::vector<SaveHandle<StoredCheckpoint>> handles;
  for (std::uint64_t step = 1; step <= 12; ++step)
    handles.push_back(writer.save_async(saver, "train", step, brain_of(step)));
  for (const SaveHandle<StoredCheckpoint>& handle : handles) handle.wait();
  const LoadedCheckpoint loaded = run.run().load("train");
  BOOST_TEST(loaded.entry.step == 12);
  BOOST_TEST((BrainCheckpoint::load(loaded.path).regions == brain_of(12).regions));
}

BOOST_AUTO_TEST_CASE(what_goes_wrong_comes_through_the_handle_and_the_run_stays_whole) {
  const TemporaryRun run;
  std::vector<std::string> warnings;
  std::mutex mutex;
  RunWriter writer = run.writer({.on_warning = [&](const std::string& sentence) {
    const std::lock_guard lock(mutex);
    warnings.push_back(sentence);
  }});
  AsyncSaver saver({.when_busy = WhenBusy::queue, .max_unfinished = 10});
  writer.save_async(saver, "train", 1, brain_of(1)).wait();
  // Two of one step: the second meets the first at the rename.
  const SaveHandle<StoredCheckpoint> first = writer.save_async(saver, "train", 2, brain_of(2));
  SaveHandle<StoredCheckpoint> second = first;
  try {
    second = writer.save_async(saver, "train", 2, brain_of(3));
    BOOST_CHECK_EXCEPTION(second.wait(), UsageError, has_code(ErrorCode::exists));
    BOOST_CHECK_EXCEPTION(second.wait(), UsageError, has_code(ErrorCode::exists));
    const std::lock_guard lock(mutex);
    BOOST_TEST(warnings.size() == 1);
  } catch (const UsageError& error) {
    BOOST_TEST((error.code() == ErrorCode::exists));  // the first was that fast
  }
  BOOST_TEST(first.wait().entry.step == 2);
  BOOST_TEST((BrainCheckpoint::load(run.run().load("train").path).regions == brain_of(2).regions));
}

BOOST_AUTO_TEST_CASE(a_loop_that_would_rather_miss_one_skips_it) {
  const TemporaryRun run;
  RunWriter writer = run.writer();
  Gate gate;
  AsyncSaver saver({.when_busy = WhenBusy::skip});
  BrainSaveOptions held;
  held.save.work.progress = gate.progress();
  const SaveHandle<StoredCheckpoint> first =
      writer.save_async(saver, "train", 1, brain_of(1), {}, held);
  gate.wait_until_reached();
  const SaveHandle<StoredCheckpoint> second = writer.save_async(saver, "train", 2, brain_of(2));
  BOOST_TEST(second.skipped());
  BOOST_TEST(!first.skipped());
  gate.open();
  first.wait();
  BOOST_CHECK_EXCEPTION(second.wait(), CancelledError, says(ErrorCode::cancelled, "skipped"));
  const SaveHandle<StoredCheckpoint> third = writer.save_async(saver, "train", 3, brain_of(3));
  BOOST_TEST(!third.skipped());
  third.wait();
  BOOST_TEST(steps_of(run.run().list("train")) == (Steps{1, 3}), per_element());
}

BOOST_AUTO_TEST_CASE(a_cancelled_save_leaves_no_checkpoint) {
  const TemporaryRun run;
  RunWriter writer = run.writer();
  Gate gate;
  AsyncSaver saver;
  BrainSaveOptions held;
  held.save.work.progress = gate.progress();
  const SaveHandle<StoredCheckpoint> handle =
      writer.save_async(saver, "train", 1, brain_of(1), {}, held);
  gate.wait_until_reached();
  handle.cancel();
  gate.open();
  try {
    handle.wait();
    BOOST_TEST(run.run().list("train").size() == 1);  // it was past its last extent
  } catch (const CancelledError&) {
    BOOST_TEST(run.run().list("train").empty());
  }
}

BOOST_AUTO_TEST_SUITE_END()
