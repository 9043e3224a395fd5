// kill -9 while a chain is turned: at each so many system calls, and what is left is whole.
#include "boost_test.h"
#include "state/delta/check.h"
#include "state/delta/sample.h"
#include "support/files.h"
#include "support/killed_at.h"
#include "thalia/compress.h"
#include "thalia/state/delta.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(delta_rebase_killed)

namespace {

namespace fs = std::filesystem;

constexpr unsigned kCallStep = 11;

SampleState state_of(unsigned step) {
  std::mt19937_64 random(3);
  Tensor weights = normal_tensor({64, 32}, random);
  for (unsigned i = 0; i < step * 5; ++i) weights.mutable_as<float>()[i * 7 % 2048] += 1;
  return {.regions = {{"cortex", {{"w", {weights}}}}}, .steps = step};
}

// 0 in frames <- 1 <- 2, with a digest, and 1 <- branch.
struct Files {
  Files() {
    save_full(state_of(0), folder / "plain");
    compress_checkpoint(folder / "plain", file(0), {.compression = {.codec = Codec::zstd}});
    fs::remove(folder / "plain");
    save_delta(state_of(1), file(0), file(1));
    save_delta(state_of(2), file(1), file(2));
    save_delta(state_of(3), file(1), file(3));
  }
  fs::path file(unsigned step) const { return folder / (std::to_string(step) + ".thalia"); }
  void turn() const {
    const SaveOptions save{.sha256 = true, .work = {.threads = 1}};
    rebase({file(2), file(1), file(0)},
           {.chain = {.read = {.work = {.threads = 1}}}, .save = save});
  }
  void check() const {
    for (unsigned step = 0; step < 4; ++step) {
      check_chain(ChainReader::open(file(step)), state_of(step));
      BOOST_TEST(verify_chain(file(step)).ok());
    }
  }
  std::size_t turned() const {
    std::size_t count = 0;
    for (unsigned step = 0; step < 3; ++step)
      count += ChainReader::open(file(step)).depth() == 2 - step;
    return count;
  }
  TemporaryFolder folder;
};

}  // namespace

BOOST_AUTO_TEST_CASE(every_state_is_there_and_the_next_call_finishes) {
  bool was_halfway = false;
  for (unsigned call = 0;; call += kCallStep) {
    BOOST_TEST_CONTEXT("call " << call) {
      const Files files;
      const End end = run_killed_at(call, [&] { files.turn(); });
      BOOST_TEST_REQUIRE(bool(end != End::failed));
      files.check();
      was_halfway |= files.turned() == 2;
      files.turn();
      BOOST_TEST(files.turned() == 3u);
      files.check();
      if (end != End::returned) continue;
      BOOST_TEST(call > 100u);  // or nothing was counted
    }
    break;
  }
  BOOST_TEST(was_halfway);
}

BOOST_AUTO_TEST_SUITE_END()
