#include <algorithm>
#include <cmath>

#include "boost_test.h"
#include "thalia/store/retention.h"

using namespace thalia;
using boost::test_tools::per_element;
using Steps = std::vector<std::uint64_t>;
using Fate = RetentionDecision::Fate;

BOOST_AUTO_TEST_SUITE(retention_plan)

namespace {

CheckpointEntry entry(std::uint64_t step, std::optional<double> metric = {}) {
  return {{.phase = "train", .step = step, .bytes = 100},
          "f" + std::to_string(step),
          1'000 + step,
          metric};
}

std::vector<CheckpointEntry> entries(std::uint64_t count) {
  std::vector<CheckpointEntry> all;
  for (std::uint64_t step = 1; step <= count; ++step) all.push_back(entry(step));
  all.back().protected_by = {"latest"};
  return all;
}

CheckpointEntry& delta(CheckpointEntry& made, const CheckpointEntry& base) {
  made.base = base.file;
  made.depth = base.depth + 1;
  made.bytes = 10;
  return made;
}

Steps of_fate(Fate fate, const std::vector<CheckpointEntry>& all, const RetentionPolicy& policy,
              const RetentionFacts& facts = {.now = 2'000}) {
  Steps steps;
  for (const RetentionDecision& decision : plan_retention(all, policy, facts))
    if (decision.fate == fate) steps.push_back(all[decision.entry].step);
  return steps;
}

Steps kept(const std::vector<CheckpointEntry>& all, const RetentionPolicy& policy,
           const RetentionFacts& facts = {.now = 2'000}) {
  return of_fate(Fate::keep, all, policy, facts);
}

constexpr std::optional<std::uint32_t> kNoLast = std::nullopt;

}  // namespace

BOOST_AUTO_TEST_CASE(first_in_first_out_counts_what_is_protected) {
  std::vector<CheckpointEntry> all = entries(25);
  all[0].protected_by = {"best"};
  all[2].protected_by = {"gate bc_best"};
  Steps expected{1, 3};
  for (std::uint64_t step = 8; step <= 25; ++step) expected.push_back(step);
  BOOST_TEST(kept(all, {}) == expected, per_element());
  BOOST_TEST(expected.size() == 20);
}

BOOST_AUTO_TEST_CASE(more_may_be_protected_than_the_limit_allows) {
  std::vector<CheckpointEntry> all = entries(5);
  for (CheckpointEntry& one : all) one.protected_by = {"gate"};
  BOOST_TEST(kept(all, {.keep_last = 2}).size() == 5);
}

BOOST_AUTO_TEST_CASE(the_newest_stays_whatever_the_policy_says) {
  std::vector<CheckpointEntry> all = entries(3);
  BOOST_TEST(kept(all, {.keep_last = 0}) == (Steps{3}), per_element());
  all.back().protected_by.clear();
  BOOST_TEST(kept(all, {.keep_last = 0, .max_age_seconds = 1, .max_bytes = 1}) == (Steps{3}),
             per_element());
  BOOST_TEST(plan_retention({}, {}, {}).empty());
}

BOOST_AUTO_TEST_CASE(rules_are_put_together) {
  std::vector<CheckpointEntry> all = entries(12);
  for (CheckpointEntry& one : all) one.metric = static_cast<double>(one.step % 5);
  RetentionPolicy policy{.keep_last = 2, .keep_every_steps = 4, .keep_best = 1};
  policy.keep = [](const CheckpointEntry& one) { return one.step == 7; };
  // Two newest, multiples of four, the best (5 before 10, which is as good), and the one asked for.
  BOOST_TEST(kept(all, policy) == (Steps{4, 5, 7, 8, 11, 12}), per_element());
  for (const RetentionDecision& decision : plan_retention(all, policy, {.now = 2'000}))
    BOOST_TEST(!decision.reason.empty());
}

BOOST_AUTO_TEST_CASE(without_a_rule_everything_stays_but_for_limits) {
  const std::vector<CheckpointEntry> all = entries(6);
  BOOST_TEST(kept(all, {.keep_last = kNoLast}).size() == 6);
  // Saved at 1001 to 1006.
  BOOST_TEST(kept(all, {.keep_last = kNoLast, .max_age_seconds = 996}) == (Steps{4, 5, 6}),
             per_element());
  BOOST_TEST(kept(all, {.keep_last = kNoLast, .max_bytes = 350}) == (Steps{4, 5, 6}),
             per_element());
}

BOOST_AUTO_TEST_CASE(one_of_each_span_of_time_stays_the_first_in_it) {
  std::vector<CheckpointEntry> all = entries(6);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].saved_at = 3'600 + i * 1'000;
  // 3600 to 7200: 3600, 4600, 5600, 6600; 7600 and 8600 in the next hour.
  BOOST_TEST(kept(all, {.keep_last = kNoLast, .keep_every_seconds = 3'600}) == (Steps{1, 5, 6}),
             per_element());
}

BOOST_AUTO_TEST_CASE(the_best_go_by_the_direction_and_never_are_nan) {
  std::vector<CheckpointEntry> all{entry(1, 3), entry(2, 1), entry(3, std::nan("")), entry(4, 2),
                                   entry(5)};
  BOOST_TEST(kept(all, {.keep_last = kNoLast, .keep_best = 2}) == (Steps{2, 4, 5}), per_element());
  BOOST_TEST(kept(all, {.keep_last = kNoLast, .keep_best = 2},
                  {.now = 0, .direction = Direction::max}) == (Steps{1, 4, 5}),
             per_element());
}

BOOST_AUTO_TEST_CASE(what_was_left_behind_by_going_back_goes_first) {
  std::vector<CheckpointEntry> all = entries(6);
  all.back().protected_by.clear();
  all[2].protected_by = {"latest"};
  for (const std::size_t i : {3, 4, 5}) all[i].left_behind = true;
  BOOST_TEST(kept(all, {.keep_last = 3}) == (Steps{1, 2, 3}), per_element());
  BOOST_TEST(kept(all, {.keep_last = 4}) == (Steps{1, 2, 3, 6}), per_element());
}

BOOST_AUTO_TEST_CASE(what_is_damaged_asks_for_nothing_and_counts_for_nothing) {
  std::vector<CheckpointEntry> all = entries(8);
  for (const std::size_t i : {1, 5, 7}) all[i].condition = Condition::damaged;
  // The latest of them, 8, is protected. 6 lies between those that are kept.
  BOOST_TEST(kept(all, {.keep_last = 3}) == (Steps{4, 5, 6, 7, 8}), per_element());
  BOOST_TEST(kept(all, {.keep_last = 1}) == (Steps{7, 8}), per_element());
  for (CheckpointEntry& one : all) one.metric = static_cast<double>(one.step % 6);
  BOOST_TEST(kept(all, {.keep_last = kNoLast, .keep_best = 2}) == (Steps{1, 7, 8}), per_element());
  BOOST_TEST(kept(all, {.keep_last = kNoLast, .keep_every_seconds = 2}) == (Steps{1, 3, 4, 7, 8}),
             per_element());
  // What is damaged goes before what is older.
  BOOST_TEST(kept(all, {.keep_last = kNoLast, .max_bytes = 600}) == (Steps{1, 3, 4, 5, 7, 8}),
             per_element());
  for (CheckpointEntry& one : all) one.condition = Condition::damaged;
  BOOST_TEST(kept(all, {.keep_last = 1}).size() == 8u);
}

BOOST_AUTO_TEST_CASE(a_base_stays_as_long_as_its_delta) {
  std::vector<CheckpointEntry> all = entries(6);
  delta(all[1], all[0]);
  delta(all[2], all[1]);
  delta(all[5], all[4]);
  // 3 needs 2 and 1; 4 goes.
  all[2].protected_by = {"best"};
  BOOST_TEST(kept(all, {.keep_last = 3}) == (Steps{1, 2, 3, 5, 6}), per_element());
  BOOST_TEST(of_fate(Fate::remove, all, {.keep_last = 3}) == (Steps{4}), per_element());
}

BOOST_AUTO_TEST_CASE(or_the_delta_becomes_a_full_file) {
  std::vector<CheckpointEntry> all = entries(6);
  delta(all[1], all[0]);
  delta(all[2], all[1]);
  all[2].protected_by = {"best"};
  const RetentionPolicy policy{.keep_last = 3, .needed_bases = NeededBases::squash};
  BOOST_TEST(kept(all, policy) == (Steps{5, 6}), per_element());
  BOOST_TEST(of_fate(Fate::squash, all, policy) == (Steps{3}), per_element());
  BOOST_TEST(of_fate(Fate::remove, all, policy) == (Steps{1, 2, 4}), per_element());
}

BOOST_AUTO_TEST_CASE(a_damaged_delta_is_not_made_a_full_file) {
  std::vector<CheckpointEntry> all = entries(4);
  delta(all[3], all[2]);
  all[2].condition = Condition::damaged;
  const RetentionPolicy policy{.keep_last = 1, .needed_bases = NeededBases::squash};
  BOOST_TEST(of_fate(Fate::squash, all, policy).empty());
  BOOST_TEST(kept(all, policy) == (Steps{2, 3, 4}), per_element());
}

BOOST_AUTO_TEST_CASE(a_budget_counts_bases) {
  std::vector<CheckpointEntry> all = entries(5);
  delta(all[1], all[0]);
  // 1 and 3 to 5 have 100 bytes, 2 has 10: 410 in all. To drop 1 alone, which 2 needs, gains
  // nothing.
  BOOST_TEST(kept(all, {.keep_last = kNoLast, .max_bytes = 310}) == (Steps{3, 4, 5}),
             per_element());
  BOOST_TEST(kept(all, {.keep_last = kNoLast, .max_bytes = 410}).size() == 5);
}

BOOST_AUTO_TEST_CASE(a_chain_in_a_circle_ends) {
  std::vector<CheckpointEntry> all = entries(3);
  all[0].base = "f2";
  all[0].depth = 2;
  all[1].base = "f1";
  all[1].depth = 2;
  BOOST_TEST(kept(all, {.keep_last = 1}) == (Steps{3}), per_element());
}

// For all small cases: no kept delta lacks a base that was there, and the newest stays.
BOOST_AUTO_TEST_CASE(no_policy_breaks_a_chain) {
  std::uint32_t random = 12345;
  const auto draw = [&](std::uint32_t below) {
    random = random * 1664525 + 1013904223;
    return (random >> 8) % below;
  };
  for (int round = 0; round < 3'000; ++round) {
    std::vector<CheckpointEntry> all = entries(1 + draw(12));
    for (std::size_t i = 1; i < all.size(); ++i)
      if (draw(2) == 0) delta(all[i], all[i - 1 - draw(static_cast<std::uint32_t>(i))]);
    RetentionPolicy policy{.keep_last = draw(2) == 0 ? kNoLast : draw(5)};
    if (draw(2) == 0) policy.keep_every_steps = 1 + draw(5);
    if (draw(2) == 0) policy.max_bytes = 1 + draw(700);
    if (draw(2) == 0) policy.needed_bases = NeededBases::squash;
    const auto decisions = plan_retention(all, policy, {.now = 2'000});
    BOOST_REQUIRE(decisions.size() == all.size());
    BOOST_REQUIRE((decisions.back().fate != Fate::remove));
    for (std::size_t i = 0; i < all.size(); ++i) {
      BOOST_REQUIRE(decisions[i].entry == i);
      if (decisions[i].fate != Fate::keep || !all[i].is_delta()) continue;
      const auto base = std::ranges::find(all, all[i].base, &CheckpointEntry::file);
      const Fate fate = decisions[static_cast<std::size_t>(base - all.begin())].fate;
      BOOST_REQUIRE((fate == Fate::keep || fate == Fate::squash));
      // What is squashed is another file afterwards, on which nothing can be based.
      BOOST_REQUIRE((fate != Fate::squash));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
