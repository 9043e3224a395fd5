// A training that publishes, and a server that follows it.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "boost_test.h"
#include "store/follow/training.h"
#include "thalia/store/publish.h"

namespace thalia::test {

struct Publishing : Training {
  explicit Publishing(const DeltaPolicy& policy = kOneChain) : Training(policy) {}
  explicit Publishing(const RunConfig& config) : Training(config) {}

  Publisher publisher(PublisherOptions options = {}, RunWriterOptions run = {}) const {
    run.durability = Durability::none;
    return Publisher(path(), std::move(options), std::move(run));
  }
  PublishedState publish(Publisher& to, std::uint64_t step, bool all_changes = false,
                         const PublishOptions& options = {}) {
    return to.publish(step, states[step] = brain_of(step, all_changes), options);
  }
  std::string latest() const {
    return std::filesystem::read_symlink(phase() / "latest.thalia").string();
  }
  Names files() const {
    Names names;
    for (const auto& entry : std::filesystem::directory_iterator(phase()))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
};

/// Takes the newest, which has to be this one, bit for bit.
inline FollowUpdate take(Follower& follower, const Publishing& training, std::uint64_t step) {
  const std::optional<FollowUpdate> update = follower.wait(kNow);
  BOOST_REQUIRE(update.has_value());
  BOOST_TEST(update->step == step);
  BOOST_TEST(!update->fell_back);
  BOOST_TEST(training.holds(*follower.current(), step));
  return *update;
}

}  // namespace thalia::test
