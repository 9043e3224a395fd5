// A follower into a file.
#include "boost_test.h"
#include "store/follow/training.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;
using boost::test_tools::per_element;

BOOST_AUTO_TEST_SUITE(store_follow_into)

namespace {

struct Published : TemporaryRun {
  Published() : TemporaryRun(config_of_deltas(kOneChain)) {}
  void save(std::uint64_t step, bool all_changes = false) const {
    writer().save("train", step, brain_of(step, all_changes));
  }
  std::filesystem::path file(std::uint64_t step) const {
    return phase() / run().file_name("train", step);
  }
  FollowOptions into() const {
    return {.into = target(), .output = {.durability = Durability::none}};
  }
  std::filesystem::path target() const { return path() / "now.thalia"; }
  bool target_is(std::uint64_t step, bool all_changes = false) const {
    BOOST_TEST(verify(target()).ok());
    return !Reader::open(target()).delta_base() &&
           BrainCheckpoint::load(target()).regions == brain_of(step, all_changes).regions &&
           Reader::open(target()).header().training_steps == step;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_file_is_the_newest_state) {
  const Published training;
  training.save(1);
  Follower follower(training.path(), training.into());
  const auto first = follower.wait(kNow);
  BOOST_REQUIRE(first.has_value());
  BOOST_TEST(first->bytes_changed == std::filesystem::file_size(training.target()));
  BOOST_TEST(training.target_is(1));
  BOOST_TEST(!follower.current());
  const Reader old = Reader::open(training.target());
  training.save(2);
  training.save(3, true);
  // Prepared, it is not there yet.
  BOOST_REQUIRE(follower.prepare(kNow).has_value());
  BOOST_TEST(training.target_is(1));
  // What is held is enough.
  std::filesystem::remove(training.file(1));
  const auto third = follower.apply();
  BOOST_TEST(third.deltas == 2U);
  BOOST_TEST(third.changed == (Names{"model/b", "model/w"}), per_element());
  BOOST_TEST(training.target_is(3, true));
  // Who has the old file open keeps it.
  BOOST_TEST(old.header().training_steps == 1U);
  BOOST_CHECK_NO_THROW(old.verify_all());
}

BOOST_AUTO_TEST_CASE(a_restart_goes_on) {
  const Published training;
  training.save(1);
  BOOST_TEST(Follower(training.path(), training.into()).wait(kNow).has_value());
  const std::string before = read_file(training.target());
  Follower again(training.path(), training.into());
  const auto same = again.wait(kNow);
  BOOST_REQUIRE(same.has_value());
  BOOST_TEST(same->bytes_changed == 0U);
  BOOST_TEST(same->changed.empty());
  BOOST_TEST(read_file(training.target()) == before);
  training.save(2);
  BOOST_TEST(again.wait(kNow)->deltas == 1U);
  BOOST_TEST(training.target_is(2));
  // What is there may be anything.
  write_file(training.target(), "no checkpoint");
  Follower third(training.path(), training.into());
  BOOST_TEST(third.wait(kNow)->bytes_changed > 0U);
  BOOST_TEST(training.target_is(2));
}

BOOST_AUTO_TEST_CASE(damage_of_the_file_is_repaired_from_the_run) {
  const Published training;
  training.save(1, true);
  Names warnings;
  FollowOptions options = training.into();
  options.on_warning = [&](const std::string& sentence) { warnings.push_back(sentence); };
  Follower follower(training.path(), options);
  follower.wait(kNow);
  damage(training.target());
  training.save(2);
  const auto update = follower.wait(kNow);
  BOOST_REQUIRE(update.has_value());
  BOOST_TEST(update->fell_back);
  BOOST_TEST(warnings.size() == 1U);
  BOOST_TEST(training.target_is(2));
}

BOOST_AUTO_TEST_CASE(it_lies_outside_of_what_is_followed) {
  const Published training;
  FollowOptions options = training.into();
  options.into = training.phase() / "now.thalia";
  BOOST_CHECK_EXCEPTION(Follower(training.path(), options), UsageError,
                        has_code(ErrorCode::bad_argument));
  options.into = training.path() / "none" / "now.thalia";
  training.save(1);
  BOOST_CHECK_THROW(Follower(training.path(), options).wait(kNow), IoError);
}

BOOST_AUTO_TEST_SUITE_END()
