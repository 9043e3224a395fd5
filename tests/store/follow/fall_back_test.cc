// What a follower does with files that are broken or gone, and where the run goes back.
#include "boost_test.h"
#include "store/follow/training.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;
using boost::test_tools::per_element;

BOOST_AUTO_TEST_SUITE(store_follow_fall_back)

BOOST_AUTO_TEST_CASE(a_damaged_link_leads_to_the_next_full_file) {
  Training training(kMixed);
  for (std::uint64_t step = 1; step <= 1; ++step) training.save(step);
  Names warnings;
  Follower follower(training.path(), telling(warnings));
  follower.wait(kNow);
  training.save(2);
  training.save(3);
  const std::string whole = read_file(training.file(2));
  // Each 97th byte: not one of them may lead to another state.
  std::size_t refused = 0;
  for (std::size_t at = 0; at < whole.size(); at += 97) {
    std::string changed = whole;
    changed[at] ^= 0x10;
    put(training.file(2), changed);
    Follower other(training.path(), {.interval = 1ms});
    std::filesystem::rename(training.file(2), training.phase() / "aside");
    std::filesystem::rename(training.file(3), training.phase() / "aside3");
    // It holds step 1, then comes the damaged link with what is based on it.
    BOOST_REQUIRE(other.wait(kNow).has_value());
    BOOST_TEST(other.current()->step() == 1U);
    std::filesystem::rename(training.phase() / "aside", training.file(2));
    std::filesystem::rename(training.phase() / "aside3", training.file(3));
    const auto update = other.wait(kNow);
    if (!update) {
      ++refused;
      BOOST_TEST(training.holds(*other.current(), 1));
    } else {
      BOOST_TEST(training.holds(*other.current(), update->step));
      BOOST_TEST((update->step == 3 || update->fell_back));
    }
  }
  BOOST_TEST(refused > 0U);
  damage(training.file(2));
  std::string changed = whole;
  changed[8] ^= 1;
  put(training.file(2), changed);
  BOOST_TEST(!follower.wait(kNow).has_value());
  BOOST_TEST(!warnings.empty());
  BOOST_TEST(training.holds(*follower.current(), 1));
  // A full file helps; it is no fall-back, as it needs no link.
  training.save(4);
  const auto update = follower.wait(kNow);
  BOOST_REQUIRE(update.has_value());
  BOOST_TEST(update->deltas == 0U);
  BOOST_TEST(!update->fell_back);
  BOOST_TEST(training.holds(*follower.current(), 4));
}

BOOST_AUTO_TEST_CASE(where_the_newest_is_broken_the_newest_before_it_is_taken) {
  Training training(kMixed);
  training.save(1);
  Names warnings;
  Follower follower(training.path(), telling(warnings, {.interval = 1ms}));
  follower.wait(kNow);
  for (std::uint64_t step = 2; step <= 6; ++step) training.save(step);
  std::filesystem::remove(training.file(5));
  const auto update = follower.wait(kNow);
  BOOST_REQUIRE(update.has_value());
  BOOST_TEST(update->step == 4U);
  BOOST_TEST(update->fell_back);
  BOOST_TEST(update->reason.find("step00000005") != std::string::npos);
  BOOST_TEST(training.holds(*follower.current(), 4));
  const std::size_t told = warnings.size();
  BOOST_TEST(told >= 1U);
  // Nothing older than what is held is ever taken, and nothing is told twice.
  for (int i = 0; i < 3; ++i) BOOST_TEST(!follower.wait(2ms).has_value());
  BOOST_TEST(warnings.size() == told);
  training.save(7);
  BOOST_TEST(follower.wait(kNow)->step == 7U);
}

BOOST_AUTO_TEST_CASE(a_base_that_another_file_has_replaced_is_not_used) {
  Training training(kMixed);
  training.save(1);
  training.save(2);
  Follower follower(training.path(), {.interval = 1ms});
  follower.wait(kNow);
  training.save(3);
  // Another file in the place of the lowest: what is held is enough.
  put(training.file(1), saved(state_of_step(9)));
  const auto update = follower.wait(kNow);
  BOOST_REQUIRE(update.has_value());
  BOOST_TEST(update->deltas == 1U);
  BOOST_TEST(training.holds(*follower.current(), 3));
  // Who holds nothing cannot read a delta, and takes the file for what it is.
  Names warnings;
  Follower other(training.path(), telling(warnings));
  const auto lowest = other.wait(kNow);
  BOOST_REQUIRE(lowest.has_value());
  BOOST_TEST(lowest->step == 1U);
  BOOST_TEST(lowest->fell_back);
  BOOST_TEST(warnings.size() == 1U);  // of both deltas, the same is wrong
  // A file that is replaced under its name is another state of that step.
  put(training.file(3), saved(state_of_step(3)));
  put(training.file(3), saved(state_of_step(5)));
  BOOST_TEST(follower.wait(kSoon)->changed == Names{"model/b"}, per_element());
}

BOOST_AUTO_TEST_CASE(memory_that_somebody_changed_is_made_anew) {
  Training training;
  training.save(1);
  std::vector<float> bias(64), weights(64 * 64);
  Names warnings;
  Follower follower(training.path(), telling(warnings));
  follower.add_memory("model", "b", std::as_writable_bytes(std::span(bias)));
  follower.add_memory("model", "w", std::as_writable_bytes(std::span(weights)));
  follower.wait(kNow);
  bias[40] = weights[7] = 1e9F;
  training.save(2);
  const auto update = follower.wait(kNow);
  BOOST_REQUIRE(update.has_value());
  BOOST_TEST(update->fell_back);
  BOOST_TEST(update->deltas == 0U);
  BOOST_TEST(warnings.size() == 1U);
  BOOST_TEST(training.holds(*follower.current(), 2));
}

BOOST_AUTO_TEST_CASE(a_run_that_goes_back_takes_the_follower_along) {
  Training training;
  for (std::uint64_t step = 1; step <= 4; ++step) training.save(step);
  Follower follower(training.path(), {.interval = 1ms});
  follower.wait(kNow);
  BOOST_TEST(follower.current()->step() == 4U);
  training.writer().resume("train", {.step = 2});
  const auto update = follower.wait(kSoon);
  BOOST_REQUIRE(update.has_value());
  BOOST_TEST(update->went_back);
  BOOST_TEST(training.holds(*follower.current(), 2));
  training.states[3] = brain_of(3, true);
  training.writer().save("train", 3, training.states[3], {.replace = true});
  const auto next = follower.wait(kNow);
  BOOST_REQUIRE(next.has_value());
  BOOST_TEST(!next->went_back);
  BOOST_TEST(training.holds(*follower.current(), 3));
}

BOOST_AUTO_TEST_CASE(a_file_that_goes_leads_nowhere_back) {
  Training training;
  training.save(1);
  training.save(2);
  Follower follower(training.path(), {.interval = 1ms});
  follower.wait(kNow);
  std::filesystem::remove(training.file(2));
  BOOST_TEST(!follower.wait(5ms).has_value());
  BOOST_TEST(training.holds(*follower.current(), 2));
}

BOOST_AUTO_TEST_SUITE_END()
