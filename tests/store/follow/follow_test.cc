// A follower in memory: what it takes, in which order, and when.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <stop_token>
#include <thread>

#include "boost_test.h"
#include "store/follow/training.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;
using boost::test_tools::per_element;

BOOST_AUTO_TEST_SUITE(store_follow)

BOOST_AUTO_TEST_CASE(each_step_comes_by_its_delta_and_states_that_are_held_stay) {
  Training training;
  training.save(1);
  Follower follower(training.path());
  BOOST_TEST(!follower.current());
  const auto first = follower.wait(kNow);
  BOOST_REQUIRE(first.has_value());
  BOOST_TEST(first->number == 1U);
  BOOST_TEST(first->deltas == 0U);
  BOOST_TEST(first->changed == (Names{"model/b", "model/w"}), per_element());
  BOOST_TEST(!follower.wait(kNow).has_value());
  const auto one = follower.current();
  training.save(2);
  const auto second = follower.wait(kNow);
  BOOST_REQUIRE(second.has_value());
  BOOST_TEST(second->step == 2U);
  BOOST_TEST(second->phase == "train");
  BOOST_TEST(second->file == training.file(2));
  BOOST_TEST(second->deltas == 1U);
  BOOST_TEST(second->bytes_read == std::filesystem::file_size(training.file(2)));
  BOOST_TEST(second->changed == Names{"model/b"}, per_element());
  BOOST_TEST(!second->fell_back);
  BOOST_TEST(second->latency >= 0);
  const auto two = follower.current();
  // Two at once are taken in one update.
  training.save(3, true);
  training.save(4);
  const auto fourth = follower.wait(kNow);
  BOOST_REQUIRE(fourth.has_value());
  BOOST_TEST(fourth->deltas == 2U);
  BOOST_TEST(training.holds(*one, 1));
  BOOST_TEST(training.holds(*two, 2));
  BOOST_TEST(training.holds(*follower.current(), 4));
  // What did not change is the same memory.
  BOOST_TEST(one->at("model", "w").bytes().data() == two->at("model", "w").bytes().data());
  BOOST_TEST(one->at("model", "b").bytes().data() != two->at("model", "b").bytes().data());
  BOOST_TEST(!two->find("model", "x").has_value());
  BOOST_CHECK_EXCEPTION(two->at("other", "w"), UsageError, has_code(ErrorCode::not_found));
}

BOOST_AUTO_TEST_CASE(deltas_and_full_files_may_alternate) {
  Training training(kMixed);
  std::vector<unsigned> deltas;
  training.save(1);
  Follower follower(training.path());
  for (std::uint64_t step = 1; step <= 8; ++step) {
    if (step > 1) training.save(step, step % 2 == 0);
    const auto update = follower.wait(kNow);
    BOOST_REQUIRE(update.has_value());
    BOOST_TEST(!update->fell_back);
    deltas.push_back(update->deltas);
    BOOST_TEST(training.holds(*follower.current(), step));
  }
  BOOST_TEST(deltas == (std::vector<unsigned>{0, 1, 1, 0, 1, 1, 0, 1}), per_element());
}

BOOST_AUTO_TEST_CASE(files_below_what_is_held_are_not_needed) {
  Training training;
  training.save(1);
  training.save(2);
  Follower follower(training.path());
  follower.wait(kNow);
  training.save(3);
  std::filesystem::remove(training.file(1));
  std::filesystem::remove(training.file(2));
  const auto update = follower.wait(kNow);
  BOOST_REQUIRE(update.has_value());
  BOOST_TEST(update->deltas == 1U);
  BOOST_TEST(training.holds(*follower.current(), 3));
}

BOOST_AUTO_TEST_CASE(memory_of_a_state_that_nobody_holds_is_used_again) {
  const TemporaryFolder folder;
  const auto publish = [&](std::uint64_t step) {
    Sample sample = state_of_step(step);
    sample.regions[0].tensors[0] = dense_tensor("w", DType::f32, {256, 256}, Role::weights, step);
    put(folder / ("step" + std::to_string(step) + ".thalia"), saved(sample));
    return sample.regions[0].tensors[0].payload;
  };
  Follower follower(folder.path());
  std::vector<std::vector<std::byte>> payloads;
  std::vector<const std::byte*> places;
  std::shared_ptr<const FollowedState> held;
  for (std::uint64_t step = 0; step < 6; ++step) {
    payloads.push_back(publish(step));
    follower.wait(kNow);
    const ByteSpan bytes = follower.current()->at("model", "w").bytes();
    BOOST_TEST(std::memcmp(bytes.data(), payloads.back().data(), bytes.size()) == 0);
    places.push_back(bytes.data());
    if (step == 3) held = follower.current();
    if (!held) continue;
    const ByteSpan kept = held->at("model", "w").bytes();
    BOOST_TEST(std::memcmp(kept.data(), payloads[3].data(), kept.size()) == 0);
  }
  BOOST_TEST(places[2] == places[0]);
  BOOST_TEST(places[3] == places[1]);
  BOOST_TEST(places[4] == places[2]);
  BOOST_TEST(places[5] != places[3]);
}

BOOST_AUTO_TEST_CASE(memory_of_the_server_changes_when_it_is_applied_and_not_before) {
  Training training;
  training.save(1);
  std::vector<float> weights(64 * 64, 7), bias(64, 7);
  const auto of = [](std::vector<float>& memory) {
    return std::as_writable_bytes(std::span(memory));
  };
  Follower follower(training.path(), {.memory = [&](const FollowedTensor& tensor) {
                      return tensor.name == "b" ? of(bias) : MutableByteSpan();
                    }});
  follower.add_memory("model", "w", of(weights));
  BOOST_CHECK_EXCEPTION(follower.add_memory("model", "w", of(weights)), UsageError,
                        has_code(ErrorCode::bad_argument));
  BOOST_CHECK_EXCEPTION(follower.apply(), UsageError, has_code(ErrorCode::wrong_state));
  const auto is_of = [&](std::uint64_t step) {
    const BrainRegion& region = training.states.at(step).regions.at("model");
    const ByteSpan w = region.weights().at("w").as_tensor().bytes(),
                   b = region.weights().at("b").as_tensor().bytes();
    return std::memcmp(weights.data(), w.data(), w.size()) == 0 &&
           std::memcmp(bias.data(), b.data(), b.size()) == 0;
  };
  BOOST_REQUIRE(follower.prepare(kNow).has_value());
  BOOST_TEST((weights == std::vector<float>(64 * 64, 7)));
  BOOST_TEST((bias == std::vector<float>(64, 7)));
  Names calls;
  const FollowHooks hooks{
      .before = [&](const FollowedTensor& tensor) { calls.push_back("before " + tensor.name); },
      .after = [&](const FollowedTensor& tensor) { calls.push_back("after " + tensor.name); }};
  follower.apply(hooks);
  BOOST_TEST(is_of(1));
  BOOST_TEST(calls == (Names{"before b", "after b", "before w", "after w"}), per_element());
  BOOST_CHECK_EXCEPTION(follower.add_memory("model", "x", of(weights)), UsageError,
                        has_code(ErrorCode::wrong_state));
  for (std::uint64_t step = 2; step <= 5; ++step) {
    training.save(step, step == 4);
    const auto prepared = follower.prepare(kNow);
    BOOST_REQUIRE(prepared.has_value());
    BOOST_TEST(is_of(step - 1));
    BOOST_TEST(follower.current()->step() == step - 1);
    // Asked again, it is the same one.
    BOOST_TEST(follower.prepare(kNow)->number == prepared->number);
    follower.apply();
    BOOST_TEST(is_of(step));
    BOOST_TEST(training.holds(*follower.current(), step));
  }
  // A newer one takes the place of one that was not applied.
  training.save(6);
  follower.prepare(kNow);
  training.save(7);
  BOOST_TEST(follower.prepare(kNow)->step == 7U);
  BOOST_TEST(follower.apply().number == 6U);
  BOOST_TEST(is_of(7));
}

BOOST_AUTO_TEST_CASE(what_a_hook_throws_leaves_the_rest_for_the_next_call) {
  Training training;
  training.save(1);
  std::vector<float> weights(64 * 64), bias(64);
  Follower follower(training.path());
  follower.add_memory("model", "w", std::as_writable_bytes(std::span(weights)));
  follower.add_memory("model", "b", std::as_writable_bytes(std::span(bias)));
  follower.prepare(kNow);
  const FollowHooks broken{.before = [](const FollowedTensor& tensor) {
    if (tensor.name == "w") throw std::runtime_error("no");
  }};
  BOOST_CHECK_THROW(follower.apply(broken), std::runtime_error);
  BOOST_TEST(!follower.current());
  BOOST_CHECK_EXCEPTION(follower.prepare(kNow), UsageError, has_code(ErrorCode::wrong_state));
  const FollowHooks late{.after = [](const FollowedTensor&) { throw std::runtime_error("no"); }};
  BOOST_CHECK_THROW(follower.apply(late), std::runtime_error);
  Names applied;
  follower.apply({.after = [&](const FollowedTensor& tensor) { applied.push_back(tensor.name); }});
  BOOST_TEST(applied == Names{"w"}, per_element());
  BOOST_TEST(training.holds(*follower.current(), 1));
}

BOOST_AUTO_TEST_CASE(a_part_of_the_tensors_may_be_followed) {
  Training training;
  training.save(1);
  Follower follower(training.path(), {.include = {"model/b"}});
  follower.wait(kNow);
  BOOST_TEST(follower.current()->tensors().size() == 1U);
  training.save(2);
  BOOST_TEST(follower.wait(kNow)->deltas == 1U);
  BOOST_TEST(!follower.current()->find("model", "w").has_value());
}

BOOST_AUTO_TEST_CASE(a_folder_of_files_is_followed_by_their_steps_or_by_its_pointer) {
  const TemporaryFolder folder;
  const auto full = [&](const char* name, std::uint64_t step) {
    save(folder / name, state_of_step(step));
  };
  full("a.thalia", 5);
  full("b.thalia", 3);
  write_file(folder / "no.thalia", "nothing");
  write_file(folder / "other.txt", "nothing");
  Follower follower(folder.path(), {.interval = 1ms});
  BOOST_TEST(follower.wait(kNow)->step == 5U);
  full("c.thalia", 4);
  BOOST_TEST(!follower.wait(5ms).has_value());
  const ChainReader base = ChainReader::open(folder / "a.thalia");
  const Sample six = state_of_step(6);
  full("six", 6);
  write_delta(state_source(ChainReader::open(folder / "six")), base, folder / "d.delta.thalia");
  std::filesystem::remove(folder / "six");
  const auto update = follower.wait(kNow);
  BOOST_REQUIRE(update.has_value());
  BOOST_TEST(update->step == 6U);
  BOOST_TEST(update->deltas == 1U);
  BOOST_TEST(update->phase.empty());
  // A pointer leads, also back.
  std::filesystem::create_symlink("b.thalia", folder / "latest.thalia");
  const auto back = follower.wait(kSoon);
  BOOST_REQUIRE(back.has_value());
  BOOST_TEST(back->step == 3U);
  BOOST_TEST(back->went_back);
  full("e.thalia", 9);
  BOOST_TEST(!follower.wait(5ms).has_value());
  BOOST_CHECK_EXCEPTION(Follower(folder.path(), {.phase = "train"}), UsageError,
                        has_code(ErrorCode::bad_argument));
}

BOOST_AUTO_TEST_CASE(it_waits_with_reports_and_without) {
  for (const bool polling : {false, true}) {
    Training training;
    training.save(1);
    Follower follower(
        training.path(),
        {.interval = polling ? 1ms : std::chrono::milliseconds(60'000), .polling = polling});
    BOOST_TEST(follower.wait(kNow)->step == 1U);
    BOOST_TEST(follower.is_polling() == polling);
    std::jthread training_on([&] {
      for (std::uint64_t step = 2; step <= 4; ++step)
        training.writer().save("train", step, brain_of(step));
    });
    std::uint64_t step = 1;
    while (step < 4) {
      const auto update = follower.wait(kSoon);
      BOOST_REQUIRE(update.has_value());
      BOOST_TEST(update->step > step);
      step = update->step;
    }
    // From another thread, also before the wait.
    follower.wake();
    BOOST_TEST(!follower.wait().has_value());
    std::jthread waker([&] { follower.wake(); });
    BOOST_TEST(!follower.wait().has_value());
  }
}

BOOST_AUTO_TEST_CASE(a_stop_ends_the_wait) {
  Training training;
  std::stop_source stop;
  FollowOptions options;
  options.chain.read.work.cancel = stop.get_token();
  Follower follower(training.path(), options);
  std::jthread stopper([&] { stop.request_stop(); });
  BOOST_CHECK_THROW(follower.wait(), CancelledError);
}

BOOST_AUTO_TEST_CASE(the_stop_of_a_call_ends_that_one) {
  Training training;
  Follower follower(training.path());
  std::stop_source stop;
  {
    std::jthread stopper([&] { stop.request_stop(); });
    BOOST_CHECK_THROW(follower.wait({}, stop.get_token()), CancelledError);
  }
  training.save(1);
  BOOST_CHECK_THROW(follower.wait(kNow, stop.get_token()), CancelledError);
  BOOST_TEST(follower.wait(kSoon)->step == 1U);
}

BOOST_AUTO_TEST_CASE(a_forked_child_has_what_was_held_and_follows_nothing) {
  Training training;
  training.save(1);
  std::vector<std::byte> memory(16);
  Follower follower(training.path());
  follower.wait(kNow);
  const auto in_child = [&] {
    const auto refused = [](const auto& call) {
      try {
        call();
      } catch (const UsageError& error) {
        return error.code() == ErrorCode::wrong_state;
      }
      return false;
    };
    follower.wake();
    return training.holds(*follower.current(), 1) && refused([&] { follower.wait(kNow); }) &&
           refused([&] { follower.apply(); }) &&
           refused([&] { follower.add_memory("model", "w", memory); });
  };
  const pid_t child = ::fork();
  if (child == 0) ::_exit(in_child() ? 0 : 1);
  int status = 0;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  BOOST_TEST(status == 0);
  // The child's wake() is none of the parent's.
  training.save(2);
  BOOST_TEST(follower.wait(kSoon)->step == 2U);
}

BOOST_AUTO_TEST_CASE(phases_follow_each_other) {
  RunConfig config = small_config();
  config.phases.push_back({.name = "next"});
  const TemporaryRun run(config);
  Follower all(run.path());
  Follower first(run.path(), {.phase = "train"});
  run.writer().save("train", 7, brain_of(7));
  BOOST_TEST(all.wait(kSoon)->step == 7U);
  run.writer().save("next", 1, brain_of(1));
  const auto update = all.wait(kSoon);
  BOOST_TEST(update->phase == "next");
  BOOST_TEST(update->step == 1U);
  BOOST_TEST(!update->went_back);
  BOOST_TEST(first.wait(kNow)->step == 7U);
  BOOST_CHECK_EXCEPTION(Follower(run.path() / "none"), UsageError, has_code(ErrorCode::not_found));
  BOOST_CHECK_EXCEPTION(Follower(run.path(), {.phase = "none"}), UsageError,
                        has_code(ErrorCode::not_found));
  BOOST_CHECK_EXCEPTION(Follower(run.path(), {.interval = 0ms}), UsageError,
                        has_code(ErrorCode::bad_argument));
}

BOOST_AUTO_TEST_CASE(what_is_held_has_a_lease) {
  Training training;
  training.save(1);
  const auto is_leased = [&] {
    const std::vector<CheckpointEntry> entries = training.run().list("train");
    return std::ranges::any_of(entries.front().protected_by, [](const std::string& reason) {
      return reason.starts_with("follower ");
    });
  };
  {
    Follower follower(training.path());
    BOOST_TEST(!is_leased());
    follower.wait(kNow);
    BOOST_TEST(is_leased());
  }
  BOOST_TEST(!is_leased());
  Follower silent(training.path(), {.lease = false});
  silent.wait(kNow);
  BOOST_TEST(!is_leased());
}

BOOST_AUTO_TEST_SUITE_END()
