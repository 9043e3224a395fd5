// What a publisher makes of each state, and what stays of those before it.
#include <algorithm>
#include <future>
#include <thread>

#include "boost_test.h"
#include "store/save/publishing.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;
using boost::test_tools::per_element;

BOOST_AUTO_TEST_SUITE(store_publish)

namespace {

RunConfig keeping(std::uint32_t last, DeltaPolicy policy) {
  RunConfig config = config_of_deltas(policy);
  config.phases[0].retention.keep_last = last;
  return config;
}

TensorSource source_of(const char* name, const Tensor& tensor) {
  return {.spec = {.name = name, .dtype = tensor.dtype(), .shape = tensor.shape()},
          .load = [tensor] { return tensor; }};
}

// Borrows the vectors.
StateSource state_of(std::uint64_t step,
                     const std::vector<std::pair<const char*, const std::vector<float>*>>& named) {
  StateSource state{.training_steps = step};
  RegionSource& region = state.regions.emplace_back();
  region.spec.name = "r";
  for (const auto& [name, values] : named)
    region.tensors.push_back(source_of(
        name, Tensor::borrow(DType::f32, {values->size()}, std::as_bytes(std::span(*values)))));
  return state;
}

bool has(const FollowedState& state, const char* name, const std::vector<float>& values) {
  return std::ranges::equal(state.at("r", name).as<float>(), values);
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_state_is_seen_and_only_the_first_of_a_restart_reads_its_base) {
  Publishing training;
  std::optional<Follower> follower;
  for (std::uint64_t start = 1; start <= 7; start += 3) {
    Publisher publisher = training.publisher();
    BOOST_TEST(publisher.phase() == "train");
    BOOST_TEST((publisher.newest() == (start == 1 ? std::nullopt : std::optional(start - 1))));
    for (std::uint64_t step = start; step < start + 3; ++step) {
      const PublishedState published = training.publish(publisher, step, step % 2 == 0);
      BOOST_TEST(published.entry.step == step);
      BOOST_TEST(published.entry.depth == step - 1);
      BOOST_TEST(published.from_memory == (step != start));
      BOOST_TEST(published.tensors == 2U);
      BOOST_TEST(published.visible_seconds > 0);
      BOOST_TEST(published.seconds >= published.visible_seconds);
      BOOST_TEST(training.latest() == published.entry.file);
      if (!follower) follower.emplace(training.path());
      take(*follower, training, step);
    }
  }
}

BOOST_AUTO_TEST_CASE(without_a_copy_in_memory_each_delta_reads_its_base) {
  Publishing training;
  Publisher publisher = training.publisher({.hold = false});
  training.publish(publisher, 1);
  Follower follower(training.path());
  take(follower, training, 1);
  const PublishedState second = training.publish(publisher, 2);
  BOOST_TEST(!second.from_memory);
  BOOST_TEST(second.entry.depth == 1U);
  take(follower, training, 2);
}

BOOST_AUTO_TEST_CASE(what_did_not_change_is_not_stored_again) {
  Publishing training;
  Publisher publisher = training.publisher();
  std::vector<float> w(1000, 1), b(10, 2);
  const auto publish = [&](std::uint64_t step) {
    return publisher.publish(step, state_of(step, {{"w", &w}, {"b", &b}}));
  };
  BOOST_TEST(publish(1).changed == 2U);
  Follower follower(training.path());
  follower.wait(kNow);
  const PublishedState again = publish(2);
  BOOST_TEST(again.changed == 0U);
  BOOST_TEST(again.entry.depth == 1U);
  const auto nothing = follower.wait(kNow);
  BOOST_REQUIRE(nothing.has_value());
  BOOST_TEST(nothing->step == 2U);
  BOOST_TEST(nothing->changed.empty());
  b[3] = 7;
  BOOST_TEST(publish(3).changed == 1U);
  const auto third = follower.wait(kNow);
  BOOST_REQUIRE(third.has_value());
  BOOST_TEST(third->changed == Names{"r/b"}, per_element());
  BOOST_TEST(has(*follower.current(), "b", b));
}

BOOST_AUTO_TEST_CASE(tensors_may_come_go_and_have_another_shape) {
  Publishing training;
  Publisher publisher = training.publisher();
  std::vector<float> w(1000, 1), b(10, 2), added(77, 3);
  publisher.publish(1, state_of(1, {{"w", &w}, {"b", &b}}));
  Follower follower(training.path());
  follower.wait(kNow);
  const auto publish = [&](std::uint64_t step, const StateSource& state) {
    BOOST_TEST(publisher.publish(step, state).from_memory);
    const auto update = follower.wait(kNow);
    BOOST_REQUIRE(update.has_value());
    BOOST_TEST(!update->fell_back);
    BOOST_TEST(update->step == step);
    return *update;
  };
  // Before the others: what is held is of other places then.
  publish(2, state_of(2, {{"a", &added}, {"w", &w}, {"b", &b}}));
  BOOST_TEST(has(*follower.current(), "a", added));
  w.resize(1200, 5);
  b[0] = 8;
  publish(3, state_of(3, {{"a", &added}, {"w", &w}, {"b", &b}}));
  BOOST_TEST(has(*follower.current(), "w", w));
  BOOST_TEST(has(*follower.current(), "b", b));
  const FollowUpdate fourth = publish(4, state_of(4, {{"b", &b}, {"w", &w}}));
  BOOST_TEST(fourth.removed == Names{"r/a"}, per_element());
  w[7] = 9;
  publish(5, state_of(5, {{"b", &b}, {"w", &w}}));
  BOOST_TEST(has(*follower.current(), "w", w));
  BOOST_TEST(has(*follower.current(), "b", b));
  BOOST_TEST(!follower.current()->find("r", "a").has_value());
}

BOOST_AUTO_TEST_CASE(connections_are_published) {
  Publishing training;
  Publisher publisher = training.publisher();
  std::vector<float> w(16, 1);
  for (std::uint64_t step = 1; step <= 3; ++step) {
    StateSource state = state_of(step, {{"w", &w}});
    w[step] = 3;
    ConnectionSource& one = state.connections.emplace_back();
    one.source = one.target = "r";
    one.weights = source_of(
        "w", Tensor::borrow(DType::f32, {4, 4}, std::as_bytes(std::span<const float>(w))));
    BOOST_TEST(publisher.publish(step, state).tensors == 2U);
    const LoadedCheckpoint loaded = training.run().load("train");
    const Tensor read = loaded.chain.read(loaded.chain.reader().connection(0).weights);
    BOOST_TEST(std::ranges::equal(read.as<float>(), w));
  }
}

BOOST_AUTO_TEST_CASE(old_links_go_once_no_follower_needs_them) {
  Publishing training(keeping(1, {.kind = DeltaPolicy::Kind::every, .full_every = 4}));
  Publisher publisher = training.publisher();
  for (const std::uint64_t step : {1, 2}) training.publish(publisher, step);
  std::optional<Follower> follower(std::in_place, training.path());
  take(*follower, training, 2);
  // Two links back.
  for (const std::uint64_t step : {3, 4})
    BOOST_TEST(training.publish(publisher, step).removed.empty());
  BOOST_TEST(take(*follower, training, 4).deltas == 2U);
  // Full: 4 is held, and what it is based on stays.
  const PublishedState fifth = training.publish(publisher, 5);
  BOOST_TEST(!fifth.entry.is_delta());
  BOOST_TEST(fifth.removed.empty());
  take(*follower, training, 5);
  BOOST_TEST(training.publish(publisher, 6).removed.size() == 4U);
  BOOST_TEST(steps_of(training.run().list("train")) == (std::vector<std::uint64_t>{5, 6}),
             per_element());
  take(*follower, training, 6);
  // One that has ended holds nothing.
  follower.reset();
  for (const std::uint64_t step : {7, 8, 9}) training.publish(publisher, step);
  BOOST_TEST(steps_of(training.run().list("train")) == (std::vector<std::uint64_t>{9}),
             per_element());
}

BOOST_AUTO_TEST_CASE(the_policy_of_the_run_counts) {
  Publishing full({.kind = DeltaPolicy::Kind::never});
  Publisher never = full.publisher();
  for (const std::uint64_t step : {1, 2}) BOOST_TEST(!full.publish(never, step).entry.is_delta());
  // By bytes: the second is too dear, and a full file takes its place before anybody sees it.
  Publishing cost({.kind = DeltaPolicy::Kind::cost, .max_cost = 1.5});
  Names seen;
  const auto note = [&](SaveStep step) {
    if (step == SaveStep::write) seen.push_back(cost.run().latest("train")->file);
  };
  {
    Publisher first = cost.publisher();
    cost.publish(first, 1);
  }
  Publisher publisher = cost.publisher({}, {.on_step = note});
  const PublishedState small = cost.publish(publisher, 2);
  BOOST_TEST(small.entry.depth == 1U);
  BOOST_TEST(!small.entry.read_factor.has_value());
  Follower follower(cost.path());
  take(follower, cost, 2);
  seen.clear();
  BOOST_TEST(cost.publish(publisher, 3, true).entry.depth == 0U);
  BOOST_TEST(seen.size() == 2U);
  for (const std::string& file : seen) BOOST_TEST(file == small.entry.file);
  take(follower, cost, 3);
  // What is held is of the full file.
  BOOST_TEST(cost.publish(publisher, 4, true).from_memory == false);
  take(follower, cost, 4);
}

BOOST_AUTO_TEST_CASE(the_best_is_kept_and_becomes_the_gate) {
  Publishing training(keeping(1, kOneChain));
  Publisher publisher = training.publisher();
  BOOST_TEST(training.publish(publisher, 1, false, {.metric = 0.5}).is_best);
  BOOST_TEST(!training.publish(publisher, 2, false, {.metric = 0.75}).is_best);
  BOOST_TEST(training.publish(publisher, 3, false, {.metric = 0.25}).is_best);
  BOOST_TEST(publisher.writer().promote("train").gate.step == 3U);
  training.publish(publisher, 4);
  BOOST_TEST(training.run().best("train")->step == 3U);
  BOOST_TEST(training.run().load_gate("train_best").entry.step == 3U);
}

BOOST_AUTO_TEST_CASE(a_writer_says_what_is_published) {
  Publishing training;
  RunWriter run = training.writer();
  Publisher publisher(run);
  BOOST_TEST(&publisher.writer() == &run);
  std::vector<float> w(1000, 1);
  for (std::uint64_t step = 1; step <= 3; ++step) {
    w[step] = 2;
    Writer writer = publisher.new_checkpoint(step);
    writer.add_tensor(writer.add_region({.name = "r"}), {.name = "w", .shape = {1000}},
                      std::as_bytes(std::span<const float>(w)));
    const PublishedState published = publisher.publish(writer);
    BOOST_TEST(published.entry.step == step);
    BOOST_TEST(published.from_memory == (step > 1));
    Follower follower(training.path());
    follower.wait(kNow);
    BOOST_TEST(has(*follower.current(), "w", w));
  }
  BOOST_CHECK_EXCEPTION(publisher.new_checkpoint(3), UsageError,
                        says(ErrorCode::bad_argument, "step", "more than 3"));
}

BOOST_AUTO_TEST_CASE(in_the_background_memory_may_change_once_the_call_is_back) {
  Publishing training;
  // Holds the first back until its memory has changed.
  std::promise<void> changed;
  std::shared_future<void> may_go = changed.get_future().share();
  Publisher publisher = training.publisher({}, {.on_step = [may_go](SaveStep step) {
                                             if (step == SaveStep::write) may_go.wait();
                                           }});
  std::vector<float> w(1000, 1);
  std::vector<SaveHandle<PublishedState>> handles;
  handles.push_back(publisher.publish_async(1, state_of(1, {{"w", &w}})));
  BOOST_TEST(!handles[0].done());
  BOOST_TEST(!handles[0].wait_for(std::chrono::nanoseconds(1)));
  w.assign(1000, 9);
  changed.set_value();
  Follower follower(training.path());
  BOOST_TEST(handles[0].wait().entry.step == 1U);
  follower.wait(kNow);
  BOOST_TEST(has(*follower.current(), "w", std::vector<float>(1000, 1)));
  // In order, each with what was there at its call; the one before is waited for.
  for (std::uint64_t step = 2; step <= 4; ++step) {
    w.assign(1000, static_cast<float>(step));
    handles.push_back(publisher.publish_async(step, state_of(step, {{"w", &w}})));
    BOOST_TEST(handles[step - 2].done());
  }
  w.assign(1000, 9);
  publisher.wait();
  for (const auto& handle : handles) BOOST_TEST(handle.done());
  BOOST_TEST(handles[3].wait().from_memory);
  BOOST_TEST(follower.wait(kNow)->deltas == 3U);
  BOOST_TEST(has(*follower.current(), "w", std::vector<float>(1000, 4)));
  // Both ways go on from each other's copies.
  w[5] = 1;
  BOOST_TEST(publisher.publish(5, state_of(5, {{"w", &w}})).from_memory);
  follower.wait(kNow);
  BOOST_TEST(has(*follower.current(), "w", w));
  w[6] = 1;
  BOOST_TEST(publisher.publish_async(6, state_of(6, {{"w", &w}})).wait().from_memory);
  follower.wait(kNow);
  BOOST_TEST(has(*follower.current(), "w", w));
}

BOOST_AUTO_TEST_CASE(a_resumed_run_goes_on_over_what_was_left_behind) {
  Publishing training;
  Publisher publisher = training.publisher();
  for (const std::uint64_t step : {1, 2, 3, 4}) training.publish(publisher, step);
  Follower follower(training.path());
  take(follower, training, 4);
  publisher.writer().resume("train", {.step = 2});
  const PublishedState third = training.publish(publisher, 3, true);
  BOOST_TEST(!third.entry.is_delta());
  const auto back = follower.wait(kNow);
  BOOST_REQUIRE(back.has_value());
  BOOST_TEST(back->went_back);
  BOOST_TEST(training.holds(*follower.current(), 3));
  training.publish(publisher, 4, true);
  take(follower, training, 4);
}

BOOST_AUTO_TEST_SUITE_END()
