// What becomes of a state that cannot be published, and of a publisher that was killed.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <stdexcept>

#include "boost_test.h"
#include "store/save/publishing.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;
using boost::test_tools::per_element;

BOOST_AUTO_TEST_SUITE(store_publish_failure)

namespace {

/// Throws at a step of a save, while it is set.
struct Failing {
  std::optional<SaveStep> at;
  RunWriterOptions options() {
    return {.on_step = [this](SaveStep step) {
      if (step == at) throw std::runtime_error("as the test has it");
    }};
  }
};

int status_of(pid_t child) {
  int status = 0;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_step_that_is_not_newer_writes_nothing) {
  Publishing training;
  Publisher publisher = training.publisher();
  training.publish(publisher, 5);
  training.publish(publisher, 8);
  const Names before = training.files();
  for (const std::uint64_t step : {0, 4, 5, 7, 8})
    BOOST_CHECK_EXCEPTION(training.publish(publisher, step), UsageError,
                          says(ErrorCode::bad_argument, "step", "more than 8", "train"));
  BOOST_CHECK_EXCEPTION(training.publish(publisher, kMaxStep + 1), UsageError,
                        has_code(ErrorCode::bad_argument));
  BOOST_TEST(training.files() == before, per_element());
  // What is held is as it was.
  BOOST_TEST(training.publish(publisher, 9).from_memory);
}

BOOST_AUTO_TEST_CASE(a_later_step_of_another_thread_comes_first) {
  Publishing training;
  RunWriter* run = nullptr;
  bool saves = false;
  RunWriter writer = training.writer({.on_step = [&](SaveStep step) {
    if (step != SaveStep::sync_folder || !saves) return;
    saves = false;
    run->save("train", 7, brain_of(7));
  }});
  run = &writer;
  Publisher publisher(writer);
  training.publish(publisher, 5);
  saves = true;
  BOOST_CHECK_EXCEPTION(training.publish(publisher, 6), UsageError,
                        says(ErrorCode::bad_argument, "more than 7"));
  BOOST_TEST(steps_of(training.run().list("train")) == (std::vector<std::uint64_t>{5, 7}),
             per_element());
  BOOST_TEST(publisher.newest().value_or(99) == 7U);
  BOOST_TEST(!std::filesystem::exists(training.file(6).string() + ".sha256"));
}

BOOST_AUTO_TEST_CASE(what_fails_before_it_is_seen_leaves_nothing_and_can_be_tried_again) {
  Publishing training;
  Failing failing;
  Publisher publisher = training.publisher({}, failing.options());
  training.publish(publisher, 1);
  Follower follower(training.path());
  take(follower, training, 1);
  const Names before = training.files();
  for (const SaveStep step : {SaveStep::write, SaveStep::sidecar, SaveStep::sync_folder,
                              SaveStep::journal, SaveStep::latest}) {
    failing.at = step;
    BOOST_CHECK_THROW(training.publish(publisher, 2), std::runtime_error);
    BOOST_TEST_CONTEXT(save_step_name(step)) {
      BOOST_TEST(training.files() == before, per_element());
      BOOST_TEST(publisher.newest().value_or(99) == 1U);
      BOOST_TEST(!follower.wait(kNow).has_value());
    }
  }
  failing.at.reset();
  BOOST_TEST(training.publish(publisher, 2).entry.depth == 1U);
  take(follower, training, 2);
  BOOST_TEST(training.publish(publisher, 3).from_memory);
  take(follower, training, 3);
}

BOOST_AUTO_TEST_CASE(what_fails_once_it_is_seen_is_published) {
  Publishing training;
  Failing failing;
  Publisher publisher = training.publisher({}, failing.options());
  training.publish(publisher, 1);
  Follower follower(training.path());
  std::uint64_t number = 1;
  for (const SaveStep step : {SaveStep::best, SaveStep::retain}) {
    failing.at = step;
    BOOST_CHECK_THROW(training.publish(publisher, ++number), std::runtime_error);
    BOOST_TEST(publisher.newest().value_or(99) == number);
    take(follower, training, number);
  }
  failing.at.reset();
  training.publish(publisher, ++number);
  take(follower, training, number);
}

BOOST_AUTO_TEST_CASE(what_fails_in_the_background_is_the_handles) {
  Publishing training;
  Failing failing;
  Publisher publisher = training.publisher({}, failing.options());
  const auto publish = [&](std::uint64_t step, const PublishOptions& options = {}) {
    return publisher.publish_async(step, training.states[step] = brain_of(step), options);
  };
  publish(1).wait();
  failing.at = SaveStep::latest;
  const SaveHandle<PublishedState> failed = publish(2);
  BOOST_CHECK_THROW(failed.wait(), std::runtime_error);
  BOOST_TEST((failed.error() != nullptr));
  failing.at.reset();
  std::stop_source stop;
  stop.request_stop();
  PublishOptions options;
  options.save.work.cancel = stop.get_token();
  BOOST_CHECK_THROW(publish(2, options).wait(), CancelledError);
  BOOST_TEST(publisher.newest().value_or(99) == 1U);
  BOOST_CHECK_EXCEPTION(publish(1), UsageError, has_code(ErrorCode::bad_argument));
  BOOST_TEST(publish(2).wait().entry.depth == 1U);
  Follower follower(training.path());
  take(follower, training, 2);
}

BOOST_AUTO_TEST_CASE(a_base_that_went_or_was_changed_is_not_taken_from_memory) {
  Publishing training;
  Publisher publisher = training.publisher();
  training.publish(publisher, 1);
  std::filesystem::remove(training.file(1));
  BOOST_TEST(!training.publish(publisher, 2).entry.is_delta());
  // The same state as another file, as retention makes it of a delta that loses its base.
  training.publish(publisher, 3);
  put(training.file(3), [&] {
    const std::filesystem::path whole = training.path() / "whole.thalia";
    resolve(training.file(3), whole);
    return read_file(whole);
  }());
  const PublishedState fourth = training.publish(publisher, 4);
  BOOST_TEST(!fourth.from_memory);
  Follower follower(training.path());
  take(follower, training, 4);
  BOOST_TEST(training.publish(publisher, 5).from_memory);
  take(follower, training, 5);
}

BOOST_AUTO_TEST_CASE(a_damaged_base_makes_a_full_file) {
  Publishing training;
  {
    Publisher publisher = training.publisher();
    training.publish(publisher, 1);
  }
  damage(training.file(1));
  Names warnings;
  Publisher publisher = training.publisher(
      {}, {.on_warning = [&](const std::string& one) { warnings.push_back(one); }});
  BOOST_TEST(!training.publish(publisher, 2).entry.is_delta());
  BOOST_TEST(warnings.size() == 1U);
  Follower follower(training.path());
  take(follower, training, 2);
}

BOOST_AUTO_TEST_CASE(one_process_publishes_at_a_time) {
  Publishing training;
  std::optional<RunWriter> other = training.writer();
  BOOST_CHECK_EXCEPTION(training.publisher(), IoError,
                        [](const IoError& error) { return error.errno_value() == EWOULDBLOCK; });
  other.reset();
  Publisher publisher = training.publisher();
  training.publish(publisher, 1);
}

BOOST_AUTO_TEST_CASE(after_a_kill_at_any_step_followers_have_the_old_or_the_new_one) {
  for (const SaveStep at :
       {SaveStep::write, SaveStep::sidecar, SaveStep::sync_folder, SaveStep::journal,
        SaveStep::latest, SaveStep::best, SaveStep::retain}) {
    BOOST_TEST_CONTEXT(save_step_name(at)) {
      Publishing training;
      Follower follower(training.path());
      {
        Publisher first = training.publisher();
        training.publish(first, 1);
      }
      take(follower, training, 1);
      training.states[2] = brain_of(2);
      const pid_t child = ::fork();
      if (child == 0) {
        try {
          Publisher publisher = training.publisher({}, {.on_step = [at](SaveStep step) {
                                                     if (step == at) ::_exit(7);
                                                   }});
          publisher.publish(2, training.states[2]);
        } catch (...) {
        }
        ::_exit(8);
      }
      BOOST_TEST(status_of(child) == 7);
      const bool is_seen = at >= SaveStep::best;
      const auto update = follower.wait(kNow);
      BOOST_TEST(update.has_value() == is_seen);
      BOOST_TEST(training.holds(*follower.current(), is_seen ? 2 : 1));
      // The next one finishes what was complete, and goes on from there.
      Publisher next = training.publisher();
      const std::uint64_t newest = at == SaveStep::write ? 1 : 2;
      BOOST_TEST(next.newest().value_or(99) == newest);
      training.publish(next, newest + 1);
      take(follower, training, newest + 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_forked_child_does_not_publish) {
  Publishing training;
  Publisher publisher = training.publisher();
  training.publish(publisher, 1);
  const pid_t child = ::fork();
  if (child == 0) {
    int result = 9;
    try {
      publisher.publish(2, brain_of(2));
    } catch (const UsageError& error) {
      result = error.code() == ErrorCode::wrong_state ? 0 : 8;
    }
    ::_exit(result);
  }
  BOOST_TEST(status_of(child) == 0);
  BOOST_TEST(publisher.newest().value_or(99) == 1U);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_published_is_refused) {
  const TemporaryRun bytes(bytes_config());
  BOOST_CHECK_EXCEPTION(Publisher(bytes.path()), UsageError, has_code(ErrorCode::wrong_state));
  Publishing training;
  BOOST_CHECK_EXCEPTION(training.publisher({.phase = "other"}), UsageError,
                        has_code(ErrorCode::not_found));
  Publisher publisher = training.publisher();
  BrainSaveOptions quantized;
  quantized.quantization.emplace();
  BOOST_CHECK_EXCEPTION(publisher.publish(1, brain_of(1), {}, quantized), UsageError,
                        has_code(ErrorCode::bad_argument));
  Publisher moved = std::move(publisher);
  BOOST_CHECK_EXCEPTION(publisher.newest(), UsageError, has_code(ErrorCode::wrong_state));
  RunConfig config = config_of_deltas(kOneChain);
  config.required_keys = {"model", "global_step"};
  Publishing keyed(config);
  Publisher of_records = keyed.publisher();
  BOOST_CHECK_EXCEPTION(keyed.publish(of_records, 1), UsageError,
                        says(ErrorCode::not_found, "global_step"));
  BOOST_TEST(!of_records.newest().has_value());
}

BOOST_AUTO_TEST_SUITE_END()
