// A follower into a file: each state that it takes takes the place of the one before, by a delta
// and by a full file.
#include <chrono>
#include <stdexcept>
#include <string>

#include "crash/content.h"
#include "crash/operation.h"
#include "thalia/files.h"
#include "thalia/state/delta.h"
#include "thalia/store/follow.h"

namespace fs = std::filesystem;

namespace thalia::crash {
namespace follows {
namespace {

constexpr const char* kFile = "now.thalia";
constexpr std::chrono::milliseconds kNow{0};

fs::path published(const fs::path& folder, unsigned step) {
  const char* const ending = step == 2 ? ".delta.thalia" : ".thalia";
  return folder / "published" / ("step" + std::to_string(step) + ending);
}

FollowOptions options_for(const fs::path& folder) {
  FollowOptions options{.into = folder / kFile};
  options.output.reproducible = true;
  options.chain.read.work.threads = 2;
  return options;
}

// What a training publishes is whole and on the disk before it has its name.
void publish(const fs::path& folder, unsigned step) {
  test::Sample sample = network(step);
  sample.training_steps = step;
  SaveOptions options = test::steady_options();
  options.output.durability = Durability::full;
  if (step != 2) {
    test::save(published(folder, step), sample, options);
    return;
  }
  const fs::path aside = folder / "aside";
  test::save(aside, sample, options);
  DeltaOptions delta;
  delta.save = options;
  delta.save.compression.codec = Codec::none;
  write_delta(state_source(ChainReader::open(aside)),
              ChainReader::open(published(folder, step - 1)), published(folder, step), delta);
  remove_file(aside);
}

void take(Follower& follower, unsigned step) {
  const auto update = follower.wait(kNow);
  if (!update || update->step != step || update->fell_back)
    throw std::logic_error("the follower has not taken step " + std::to_string(step));
}

void prepare(const fs::path& folder) {
  fs::create_directory(folder / "published");
  publish(folder, 1);
  Follower follower(folder / "published", options_for(folder));
  take(follower, 1);
}

void run(const fs::path& folder, Teller& teller) {
  Follower follower(folder / "published", options_for(folder));
  take(follower, 1);
  for (const unsigned step : {2U, 3U}) {
    publish(folder, step);
    const std::string name = "step " + std::to_string(step);
    teller.attempt(name);
    take(follower, step);
    teller.promise(name);
  }
}

std::string observe(const fs::path& folder) {
  return content_of(folder / kFile);
}

// The next follower finds the file, and takes what comes.
void go_on(const fs::path& folder) {
  publish(folder, 4);
  Follower follower(folder / "published", options_for(folder));
  take(follower, 4);
  if (content_of(folder / kFile) != content_of(published(folder, 4)))
    throw std::logic_error("the next follower has another state");
}

constexpr Operation kOperations[] = {
    {"follow into a file", prepare, run, observe, go_on},
    {"follow into a file, named", prepare, run_named<run>, observe, go_on},
};

}  // namespace
}  // namespace follows

std::span<const Operation> follow_operations() {
  return follows::kOperations;
}

}  // namespace thalia::crash
