// A follower into a file: each state that it takes takes the place of the one before, by a delta
// and by a full file. And what a follower finds of a publisher whose machine went down: the state
// that it has promised last, or one that was on its way, whole.
#include <chrono>
#include <stdexcept>
#include <string>

#include "crash/content.h"
#include "crash/operation.h"
#include "crash/store_run.h"
#include "integrity/content_hash.h"
#include "support/bytes.h"
#include "thalia/files.h"
#include "thalia/state/delta.h"
#include "thalia/store/follow.h"
#include "thalia/store/publish.h"

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

// --- Publishing -----------------------------------------------------------------

fs::path run_in(const fs::path& folder) {
  return folder / "run";
}

// Full files and deltas, of which old ones go.
RunConfig publishing() {
  RunConfig config = crash_config();
  config.deltas = {.kind = DeltaPolicy::Kind::every, .full_every = 3};
  config.phases[0].retention.keep_last = 1;
  return config;
}

PublishedState publish_step(Publisher& publisher, std::uint64_t step) {
  PublishOptions options;
  options.save.output.reproducible = true;
  options.save.work.threads = 1;
  return publisher.publish(step, crash_state(step, step % 2 == 0), options);
}

void prepare_publishing(const fs::path& folder) {
  create_run(run_in(folder), publishing());
  Publisher publisher(run_in(folder), {}, {.durability = Durability::none});
  publish_step(publisher, 1);
}

void run_publishing(const fs::path& folder, Teller& teller) {
  Publisher publisher(run_in(folder));
  for (const std::uint64_t step : {2, 3, 4, 5}) {
    const std::string name = "step " + std::to_string(step);
    teller.attempt(name);
    publish_step(publisher, step);
    teller.promise(name);
  }
}

FollowOptions looking() {
  FollowOptions options{.lease = false};
  options.chain.read.work.threads = 1;
  return options;
}

std::string text_of(const FollowedState& state) {
  std::string text = "step " + std::to_string(state.step());
  for (const FollowedTensor& tensor : state.tensors())
    text += " " + tensor.name + " " +
            test::hex(integrity::xxh3_128(state.at(tensor.region, tensor.name).bytes()));
  return text;
}

std::string text_of_step(std::uint64_t step) {
  const BrainState brain = crash_state(step, step % 2 == 0);
  std::string text = "step " + std::to_string(step);
  for (const char* const name : {"b", "w"})
    text += std::string(" ") + name + " " +
            test::hex(integrity::xxh3_128(
                brain.regions.at("model").weights().at(name).as_tensor().bytes()));
  return text;
}

std::string observe_published(const fs::path& folder) {
  Follower follower(run_in(folder), looking());
  const auto update = follower.wait(kNow);
  if (!update) return kAbsent;
  // It need not pass over anything.
  if (update->fell_back) throw std::logic_error("the latest cannot be read: " + update->reason);
  const std::string text = text_of(*follower.current());
  if (text != text_of_step(update->step)) throw std::logic_error("of no step: " + text);
  return text;
}

// The next publisher goes on after what is there, and who follows goes on with it.
void go_on_publishing(const fs::path& folder) {
  Follower follower(run_in(folder), looking());
  follower.wait(kNow);
  Publisher publisher(run_in(folder));
  for (int i = 0; i < 2; ++i) {
    const std::uint64_t step = publisher.newest().value_or(0) + 1;
    publish_step(publisher, step);
    const auto update = follower.wait(kNow);
    if (!update) throw std::logic_error("the follower has nothing new");
    if (update->step != step || text_of(*follower.current()) != text_of_step(step))
      throw std::logic_error("the follower has another state than was published");
  }
}

constexpr Operation kOperations[] = {
    {"publish", prepare_publishing, run_publishing, observe_published, go_on_publishing},
    {"publish, named", prepare_publishing, run_named<run_publishing>, observe_published,
     go_on_publishing},
    {"follow into a file", prepare, run, observe, go_on},
    {"follow into a file, named", prepare, run_named<run>, observe, go_on},
};

}  // namespace
}  // namespace follows

std::span<const Operation> follow_operations() {
  return follows::kOperations;
}

}  // namespace thalia::crash
