// What a process that is killed in the midst of a change leaves: at each of its system calls, and
// then the next process comes.
#include <algorithm>
#include <set>

#include "store/pool/runs.h"
#include "support/killed_at.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(store_pool_crash)

namespace {

namespace fs = std::filesystem;

RunConfig of_two_versions() {
  RunConfig config = hydra_config();
  config.pool->keep = 2;
  return config;
}

void add_one(const HydraRun& run) {
  RunWriter writer = run.writer();
  Pool(writer).add("phase3", 500, {.mu = 30, .sigma = 4});
}

// Each version is a file that loads; numbers only go up.
void check_pool(const HydraRun& run, std::set<std::uint64_t>& seen) {
  RunWriter writer = run.writer();
  const Pool pool(writer);
  const PoolView view = pool.view();
  BOOST_TEST(view.versions.size() <= 2u);
  PoolCache cache;
  for (const PoolMember& member : view.versions) {
    BOOST_TEST(cache.get(member).reader().region("model_record").tensor_count() == 2u);
    BOOST_TEST(member.rating.mu == 30.0);
    BOOST_TEST(member.version < view.next_version);
    seen.insert(member.version);
  }
  for (const std::string& name : list_folder(run.pool())) {
    BOOST_TEST(!name.starts_with("."));
    for (const std::string ending : {".sha256", ".meta.json"})
      if (name.ends_with(ending))
        BOOST_TEST(has_file(run.pool(), name.substr(0, name.size() - ending.size())));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_crash_at_any_call_leaves_versions_that_are_whole) {
  const HydraRun run(of_two_versions());
  {
    RunWriter writer = run.writer();
    HydraRun::save(writer, 500);
  }
  add_one(run);
  add_one(run);
  std::set<std::uint64_t> seen{1, 2};
  End end = End::killed;
  unsigned number = 0;
  for (; end == End::killed; number += 7) {
    const std::uint64_t last = *seen.rbegin();
    end = run_killed_at(number, [&] { add_one(run); });
    BOOST_TEST((end != End::failed));
    BOOST_TEST_CONTEXT("call " << number) {
      check_pool(run, seen);
      // A number that was seen does not come again.
      add_one(run);
      const std::uint64_t now = read_pool(run.run()).versions.back().version;
      BOOST_TEST(now > last);
      seen.insert(now);
    }
  }
  BOOST_TEST(number > 100u);
}

BOOST_AUTO_TEST_CASE(a_transition_that_was_cut_short_is_made_again) {
  End end = End::killed;
  for (unsigned number = 0; end == End::killed; number += 40) {
    const HydraRun run;
    {
      RunWriter writer = run.writer();
      HydraRun::play_phase1(writer);
    }
    end = run_killed_at(number, [&] {
      RunWriter writer = run.writer();
      transition(writer, hydra_transitions().at(0));
    });
    BOOST_TEST((end != End::failed));
    RunWriter writer = run.writer();
    const bool has_begun = has_file(run.path() / "phase2", "transition.json");
    BOOST_TEST_CONTEXT("call " << number) {
      if (has_begun) {
        expect<UsageError>([&] { transition(writer, hydra_transitions().at(0)); },
                           ErrorCode::exists);
      } else {
        transition(writer, hydra_transitions().at(0));
      }
      BOOST_TEST(tensor_names(run.path() / "phase2" / "start.thalia").size() == 4u);
      BOOST_TEST(tensor_names(run.path() / "phase2" / "kl_anchor.thalia").size() == 2u);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
