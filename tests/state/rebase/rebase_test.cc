// A chain that is turned: every state is as it was, whatever the files hold and whatever else is
// based on them.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <random>
#include <thread>

#include "boost_test.h"
#include "integrity/sha256.h"
#include "state/delta/check.h"
#include "state/delta/sample.h"
#include "state/quantize/quantization_sample.h"
#include "support/files.h"
#include "thalia/compress.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/state/delta.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(delta_rebase)

namespace {

namespace fs = std::filesystem;

const SaveOptions kQuick{.output = {.durability = Durability::none}};

// A training: a matrix of which a little changes, one that grows, one that stays, and a connection.
SampleState state_of(unsigned step) {
  std::mt19937_64 random(7);
  Tensor weights = normal_tensor({200, 64}, random);
  const Tensor still = random_tensor(DType::ternary, {301}, random);
  Tensor grown = normal_tensor({40 + step, 40}, random);
  for (unsigned i = 1; i <= step; ++i) {
    std::mt19937_64 own(i);
    for (int moved = 0; moved < 100; ++moved)
      weights.mutable_as<float>()[own() % (200 * 64)] += 0.01f;
  }
  return {.regions = {{"cortex",
                       {{"grown", {grown}}, {"still", {still, Role::other}}, {"w", {weights}}}},
                      {"other",
                       {{"step", {normal_tensor({3}, random, float(step + 1)), Role::other}}}}},
          .connections = {{{"cortex", "other"}, weights}},
          .steps = step,
          .metadata = "{\"step\":" + std::to_string(step) + "}"};
}

struct Chain {
  explicit Chain(unsigned count) {
    save_full(state_of(0), file(0));
    for (unsigned step = 1; step < count; ++step)
      save_delta(state_of(step), file(step - 1), file(step));
  }
  fs::path file(unsigned step) const {
    return folder / ("step_" + std::to_string(step) + (step == 0 ? ".thalia" : ".delta.thalia"));
  }
  TemporaryFolder folder;
};

// The file stands for the state of the step, at this depth.
void check_file(const fs::path& path, unsigned step, unsigned depth) {
  BOOST_TEST_CONTEXT(path.filename()) {
    const ChainReader chain = ChainReader::open(path);
    BOOST_TEST(chain.depth() == depth);
    check_chain(chain, state_of(step));
    BOOST_TEST(verify_chain(path).ok());
  }
}

RebaseOptions quick() {
  return {.save = kQuick};
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_newest_becomes_full_and_each_older_one_a_delta_of_the_next) {
  const Chain chain(5);
  const std::uint64_t saved = Reader::open(chain.file(2)).header().timestamp;
  const RebaseResult result = rebase({chain.file(4)}, quick());
  for (unsigned step = 0; step < 5; ++step) check_file(chain.file(step), step, 4 - step);
  BOOST_TEST(Reader::open(chain.file(2)).header().timestamp == saved);
  BOOST_TEST(files_in(chain.folder.path()) == 5u);
  BOOST_TEST_REQUIRE(result.files.size() == 5u);
  BOOST_TEST(result.files[0].path == resolved_path(chain.file(4)));
  BOOST_TEST(result.files[0].depth_before == 4u);
  BOOST_TEST(result.files[0].depth == 0u);
  BOOST_TEST(result.files[4].bytes == file_bytes(chain.file(0)));
  BOOST_TEST(result.files[4].bytes < result.files[4].bytes_before);
  // It is as it should be.
  BOOST_TEST(rebase({chain.file(4)}, quick()).files.empty());
}

BOOST_AUTO_TEST_CASE(a_chain_goes_on_from_its_newest_and_is_turned_again) {
  const Chain chain(4);
  rebase({chain.file(2)}, quick());
  // What came later is based on what is full now.
  check_file(chain.file(3), 3, 1);
  check_file(chain.file(0), 0, 2);
  rebase({chain.file(3)}, quick());
  for (unsigned step = 0; step < 4; ++step) check_file(chain.file(step), step, 3 - step);
}

BOOST_AUTO_TEST_CASE(what_else_is_based_on_a_file_keeps_its_base) {
  const Chain chain(4);
  const fs::path branch = chain.folder / "branch.delta.thalia";
  const fs::path twig = chain.folder / "twig.delta.thalia";
  save_delta(state_of(9), chain.file(1), branch);
  save_delta(state_of(10), branch, twig);
  // The newest has one, too.
  const fs::path later = chain.folder / "later.delta.thalia";
  save_delta(state_of(11), chain.file(3), later);
  rebase({chain.file(3)}, quick());
  for (unsigned step = 0; step < 4; ++step) check_file(chain.file(step), step, 3 - step);
  check_file(branch, 9, 3);
  check_file(twig, 10, 4);
  check_file(later, 11, 1);
  BOOST_TEST(ChainReader::open(branch).paths()[1] == chain.file(1));
}

BOOST_AUTO_TEST_CASE(deltas_in_other_folders_are_kept_where_they_are_named) {
  const Chain chain(3);
  const TemporaryFolder elsewhere;
  const fs::path far = elsewhere / "far.delta.thalia";
  save_delta(state_of(9), chain.file(0), far);
  RebaseOptions options = quick();
  options.others = {far};
  rebase({chain.file(2)}, options);
  check_file(far, 9, 3);
}

BOOST_AUTO_TEST_CASE(files_that_are_named_become_one_chain) {
  const Chain chain(3);
  const fs::path full = chain.folder / "newest.thalia";
  save_full(state_of(5), full);
  // As after a call that ended early: the newest is full, and the others are a chain of their own.
  rebase({full, chain.file(2), chain.file(1), chain.file(0)}, quick());
  check_file(full, 5, 0);
  for (unsigned step = 0; step < 3; ++step) check_file(chain.file(step), step, 3 - step);
}

BOOST_AUTO_TEST_CASE(a_chain_that_would_be_too_deep_begins_anew) {
  const Chain chain(5);
  RebaseOptions options = quick();
  options.max_depth = 2;
  rebase({chain.file(4)}, options);
  for (unsigned step = 0; step < 5; ++step) check_file(chain.file(step), step, (4 - step) % 3);
}

BOOST_AUTO_TEST_CASE(a_file_in_frames_and_one_with_a_digest_stay_so) {
  const Chain chain(3);
  const TemporaryFolder plain;
  for (const unsigned step : {0u, 2u}) {
    compress_checkpoint(chain.file(step), plain / "frames",
                        {.compression = {.codec = Codec::zstd}});
    fs::rename(plain / "frames", chain.file(step));
    write_file(chain.file(step).native() + ".sha256", "of the old one");
  }
  rebase({chain.file(2)}, quick());
  for (unsigned step = 0; step < 3; ++step) {
    check_file(chain.file(step), step, 2 - step);
    const auto wrapper = read_wrapper(chain.file(step));
    BOOST_TEST_REQUIRE(wrapper.has_value());
    BOOST_TEST(wrapper->packed == (step == 1));
  }
  for (const unsigned step : {0u, 2u}) {
    const std::string line = read_file(chain.file(step).native() + ".sha256");
    BOOST_TEST(line.substr(0, 64) == hex(integrity::sha256(bytes_of(read_file(chain.file(step))))));
  }
  BOOST_TEST(!is_file(chain.file(1).native() + ".sha256"));
}

BOOST_AUTO_TEST_CASE(what_lost_something_stays_as_it_came_out) {
  const TemporaryFolder folder;
  std::mt19937_64 random(3);
  SampleState state = {.regions = {{"r", {{"w", {normal_tensor({96, 96}, random)}}}}}};
  const auto file = [&](int i) { return folder / (std::to_string(i) + ".thalia"); };
  save_full(state, file(0));
  DeltaOptions lossy;
  lossy.loss.threshold = 0.005;
  for (int i = 1; i < 4; ++i) {
    Tensor& weights = state.regions["r"]["w"].tensor;
    const Tensor step = normal_tensor({96, 96}, random, 0.01f);
    for (std::size_t e = 0; e < 96 * 96; ++e) weights.mutable_as<float>()[e] += step.as<float>()[e];
    if (i == 2) lossy = {.loss = {.low_rank = LowRankOptions{}}};
    if (i == 3) lossy = {};
    BOOST_TEST((save_delta(state, file(i - 1), file(i), lossy).low_rank.size() == (i == 2)));
  }
  std::vector<Tensor> before;
  std::vector<std::string> texts;
  const auto read = [&](int i) {
    const ChainReader chain = ChainReader::open(file(i));
    texts.emplace_back(chain.reader().metadata_json());
    return chain.read(chain.reader().region("r").at("w"));
  };
  for (int i = 0; i < 4; ++i) before.push_back(read(i));
  rebase({file(3)}, quick());
  for (int i = 0; i < 4; ++i) {
    BOOST_TEST((read(i) == before[static_cast<std::size_t>(i)]));
    BOOST_TEST(texts.back() == texts[static_cast<std::size_t>(i)]);
    BOOST_TEST(ChainReader::open(file(i)).depth() == static_cast<unsigned>(3 - i));
  }
}

// --- Refused, with nothing changed -----------------------------------------------

namespace {

class Unchanged {
 public:
  explicit Unchanged(const fs::path& folder) : folder_(folder), before_(all()) {}
  ~Unchanged() { BOOST_TEST((all() == before_)); }

 private:
  std::map<std::string, std::string> all() const {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_))
      found[entry.path().filename()] = read_file(entry.path());
    return found;
  }
  const fs::path folder_;
  const std::map<std::string, std::string> before_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(quantized_tensors_are_not_rewritten) {
  const TemporaryFolder folder;
  std::mt19937_64 random(5);
  const Tensor weights = normal_tensor({100, 100}, random);
  write_layer(folder / "plain", {{"w", weights}});
  quantize_file(folder / "plain", folder / "base", {}, {.save = kQuick});
  write_delta(state_source(ChainReader::open(folder / "plain")), ChainReader::open(folder / "base"),
              folder / "delta", {.save = kQuick});
  const Unchanged unchanged(folder.path());
  BOOST_CHECK_THROW(rebase({folder / "delta"}, quick()), UnsupportedError);
}

BOOST_AUTO_TEST_CASE(a_base_that_is_missing_is_named) {
  const Chain chain(4);
  fs::remove(chain.file(1));
  const Unchanged unchanged(chain.folder.path());
  BOOST_CHECK_THROW(rebase({chain.file(3)}, quick()), MissingBaseError);
}

BOOST_AUTO_TEST_CASE(a_folder_that_nobody_may_write_is_left_alone) {
  const Chain chain(3);
  const Unchanged unchanged(chain.folder.path());
  ::chmod(chain.folder.path().c_str(), 0555);
  if (::access(chain.folder.path().c_str(), W_OK) != 0)
    BOOST_CHECK_THROW(rebase({chain.file(2)}, quick()), IoError);
  ::chmod(chain.folder.path().c_str(), 0755);
}

// Its older neighbour has the same tensors, whole.
BOOST_AUTO_TEST_CASE(a_damaged_file_becomes_no_base) {
  const Chain chain(3);
  const fs::path newest = chain.folder / "newest.thalia";
  save_full(state_of(2), newest);
  const TensorView weights = Reader::open(newest).region("cortex").at("w");
  std::string bytes = read_file(newest);
  bytes[weights.stored_offset() + 1000] ^= 1;
  write_file(newest, bytes);
  const Unchanged unchanged(chain.folder.path());
  BOOST_CHECK_THROW(rebase({newest, chain.file(2), chain.file(1), chain.file(0)}, quick()),
                    IntegrityError);
}

BOOST_AUTO_TEST_CASE(arguments_are_checked) {
  const Chain chain(2);
  const Unchanged unchanged(chain.folder.path());
  RebaseOptions options = quick();
  BOOST_CHECK_THROW(rebase({}, options), UsageError);
  BOOST_CHECK_THROW(rebase({chain.file(1), chain.file(1)}, options), UsageError);
  for (const unsigned depth : {0u, 256u}) {
    options.max_depth = depth;
    BOOST_CHECK_THROW(rebase({chain.file(1)}, options), UsageError);
  }
}

// Wherever it is stopped, every state is there, and the same call again finishes.
BOOST_AUTO_TEST_CASE(a_call_that_is_stopped_loses_nothing) {
  for (int stops = 0; stops < 40; ++stops) {
    const Chain chain(4);
    const fs::path branch = chain.folder / "branch.delta.thalia";
    save_delta(state_of(9), chain.file(1), branch);
    std::stop_source stop;
    RebaseOptions options = quick();
    options.save.work.cancel = stop.get_token();
    bool is_done = true;
    // The folder changes as names do.
    std::jthread stopper([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(500 * stops));
      stop.request_stop();
    });
    try {
      rebase({chain.file(3)}, options);
    } catch (const CancelledError&) {
      is_done = false;
    }
    stopper.join();
    for (unsigned step = 0; step < 4; ++step)
      check_chain(ChainReader::open(chain.file(step)), state_of(step));
    check_chain(ChainReader::open(branch), state_of(9));
    if (is_done) break;
    rebase({chain.file(3), chain.file(2), chain.file(1), chain.file(0)}, quick());
    for (unsigned step = 0; step < 4; ++step) check_file(chain.file(step), step, 3 - step);
    // It may have moved, and stays where it is.
    check_chain(ChainReader::open(branch), state_of(9));
  }
}

BOOST_AUTO_TEST_SUITE_END()
