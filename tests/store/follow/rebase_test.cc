// A follower beside a run whose deltas are turned.
#include "boost_test.h"
#include "store/follow/training.h"
#include "support/errors.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(store_follow_rebase)

BOOST_AUTO_TEST_CASE(who_holds_the_newest_goes_on_with_deltas) {
  Training training;
  for (std::uint64_t step = 1; step <= 3; ++step) training.save(step);
  Names warnings;
  Follower follower(training.path(), telling(warnings, {.interval = 1ms}));
  BOOST_REQUIRE(follower.wait(kNow).has_value());
  training.writer().rebase("train");
  // Another file of the same state: nothing to apply.
  BOOST_TEST(!follower.wait(2ms).has_value());
  training.save(4);
  const auto update = follower.wait(kSoon);
  BOOST_REQUIRE(update.has_value());
  BOOST_TEST(update->deltas == 1U);
  BOOST_TEST(!update->fell_back);
  BOOST_TEST(training.holds(*follower.current(), 4));
  BOOST_TEST(warnings.empty());
}

BOOST_AUTO_TEST_CASE(who_has_not_looked_since_takes_the_full_file) {
  Training training;
  for (std::uint64_t step = 1; step <= 3; ++step) training.save(step);
  Names warnings;
  Follower follower(training.path(), telling(warnings, {.interval = 1ms}));
  BOOST_REQUIRE(follower.wait(kNow).has_value());
  training.writer().rebase("train");
  training.save(4);
  const auto update = follower.wait(kSoon);
  BOOST_REQUIRE(update.has_value());
  BOOST_TEST(update->step == 4U);
  BOOST_TEST(training.holds(*follower.current(), 4));
}

BOOST_AUTO_TEST_CASE(the_deltas_that_a_follower_takes_next_stay) {
  Training training;
  training.save(1);
  Names warnings;
  Follower follower(training.path(), telling(warnings, {.interval = 1ms}));
  BOOST_REQUIRE(follower.wait(kNow).has_value());
  for (std::uint64_t step = 2; step <= 3; ++step) training.save(step);
  const std::string before = read_file(training.file(3));
  BOOST_CHECK_THROW(training.writer().rebase("train"), UsageError);
  BOOST_TEST((read_file(training.file(3)) == before));
  const auto update = follower.wait(kSoon);
  BOOST_REQUIRE(update.has_value());
  BOOST_TEST(update->deltas == 2U);
  BOOST_TEST(training.writer().rebase("train").files.size() == 3U);
  BOOST_TEST(!follower.wait(2ms).has_value());
  BOOST_TEST(warnings.empty());
}

BOOST_AUTO_TEST_SUITE_END()
