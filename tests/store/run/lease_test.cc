// What followers hold stays for as long as they live.
#include "store/run/lease.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boost_test.h"
#include "store/runs.h"
#include "support/errors.h"
#include "support/files.h"

using namespace thalia;
using namespace thalia::test;
using boost::test_tools::per_element;
using Steps = std::vector<std::uint64_t>;

BOOST_AUTO_TEST_SUITE(store_lease)

namespace {

// Deltas of each other, and retention by the latest alone.
RunConfig chain_config(std::uint32_t keep_last = 1) {
  RunConfig config = small_config();
  config.deltas = {.kind = DeltaPolicy::Kind::every, .full_every = 4};
  config.phases[0].retention = {.keep_last = keep_last};
  return config;
}

void save(RunWriter& writer, std::uint64_t step) {
  writer.save("train", step, brain_of(step));
}

std::string file_of(std::uint64_t step) {
  return "ckpt_train_step0000000" + std::to_string(step) + ".thalia";
}

const store::RunFolder& folder_of(const Run& run) {
  return store::RunFolder::of(run);
}

store::Lease lease_of(std::uint64_t step, std::uint64_t renewed_at) {
  return {.file = file_of(step),
          .step = step,
          .renewed_at = renewed_at,
          .valid_seconds = 60,
          .host = "server7",
          .process = 4711};
}

// As a follower that was killed left it.
void leave_lease(const TemporaryRun& run, const std::string& name, const store::Lease& lease) {
  const std::filesystem::path folder = run.path() / "train" / "followers";
  std::filesystem::create_directories(folder);
  write_file(folder / (name + ".json"), store::lease_text(lease));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_lease_survives_being_written_and_read) {
  const store::Lease lease = lease_of(7, 1'795'922'717);
  BOOST_TEST((store::parse_lease(store::lease_text(lease)) == lease));
}

BOOST_AUTO_TEST_CASE(a_lease_that_is_cut_or_changed_is_refused_or_read) {
  const std::string text = store::lease_text(lease_of(7, 1'795'922'717));
  for (std::size_t length = 0; length + 2 < text.size(); ++length)
    BOOST_CHECK_THROW(store::parse_lease(text.substr(0, length)), FormatError);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 0x11);
    try {
      const store::Lease read = store::parse_lease(changed);
      BOOST_TEST(read.valid_seconds >= 1u);
      BOOST_TEST(read.valid_seconds <= store::kMostLeaseSeconds);
    } catch (const FormatError&) {
    }
  }
  BOOST_CHECK_THROW(store::parse_lease(text + std::string(4096, ' ')), FormatError);
  for (const char* const bad :
       {R"({"renewed_at": 1})", R"({"valid_seconds": 1})",
        R"({"renewed_at": 1, "valid_seconds": 0})", R"({"renewed_at": 1, "valid_seconds": 86401})",
        R"({"renewed_at": -1, "valid_seconds": 1})", R"([])"})
    BOOST_CHECK_THROW(store::parse_lease(bad), FormatError);
}

BOOST_AUTO_TEST_CASE(a_lease_is_live_for_as_long_as_it_says) {
  const store::Lease lease = lease_of(1, 1000);
  BOOST_TEST(store::is_live(lease, 1000));
  BOOST_TEST(store::is_live(lease, 1060));
  BOOST_TEST(!store::is_live(lease, 1061));
  BOOST_TEST(store::is_live(lease, 940));
  BOOST_TEST(!store::is_live(lease, 939));
  store::Lease last = lease;
  last.renewed_at = ~std::uint64_t{0};
  BOOST_TEST(!store::is_live(last, 1000));
}

BOOST_AUTO_TEST_CASE(a_follower_keeps_what_it_holds_and_the_links_to_the_latest) {
  const TemporaryRun run(chain_config());
  RunWriter writer = run.writer();
  for (std::uint64_t step = 1; step <= 2; ++step) save(writer, step);
  {
    store::HeldLease lease(folder_of(writer.run()), "train");
    lease.hold(file_of(2), 2);
    for (std::uint64_t step = 3; step <= 4; ++step) save(writer, step);
    const std::vector<CheckpointEntry> entries = run.run().list("train");
    BOOST_TEST(steps_of(entries) == (Steps{1, 2, 3, 4}), per_element());
    const std::string why = "follower " + lease.name();
    BOOST_TEST(entries[0].protected_by.empty());
    BOOST_TEST(entries[1].protected_by == std::vector{why}, per_element());
    BOOST_TEST(entries[2].protected_by == std::vector{why}, per_element());
    BOOST_TEST(entries[3].protected_by == (std::vector<std::string>{"latest", why}), per_element());
    const StorePruneResult dry = writer.prune("train", {.dry_run = true});
    BOOST_TEST(dry.decisions[1].reason == why);
    BOOST_TEST(dry.removed.empty());
    // A full file, and the chain of what is held, which is of another one.
    for (std::uint64_t step = 5; step <= 6; ++step) save(writer, step);
    BOOST_TEST(steps_of(run.run().list("train")) == (Steps{1, 2, 5, 6}), per_element());
    lease.hold(file_of(6), 6);
    writer.prune("train");
    BOOST_TEST(steps_of(run.run().list("train")) == (Steps{5, 6}), per_element());
  }
  BOOST_TEST(list_folder(run.path() / "train" / "followers").empty());
}

BOOST_AUTO_TEST_CASE(links_to_the_latest_are_not_written_anew_while_a_follower_needs_them) {
  RunConfig config = chain_config();
  config.phases[0].retention.needed_bases = NeededBases::squash;
  const TemporaryRun run(config);
  RunWriter writer = run.writer();
  save(writer, 1);
  store::HeldLease lease(folder_of(writer.run()), "train");
  lease.hold(file_of(1), 1);
  for (std::uint64_t step = 2; step <= 4; ++step) save(writer, step);
  const std::vector<CheckpointEntry> entries = run.run().list("train");
  BOOST_TEST(steps_of(entries) == (Steps{1, 2, 3, 4}), per_element());
  BOOST_TEST(entries[3].depth == 3u);
}

BOOST_AUTO_TEST_CASE(a_lease_that_ended_or_is_no_lease_keeps_nothing) {
  const TemporaryRun run(chain_config());
  RunWriter writer = run.writer();
  save(writer, 1);
  const std::uint64_t now = store::now_seconds();
  leave_lease(run, "killed.1", lease_of(1, now - 61));
  leave_lease(run, "wrong_clock.1", lease_of(1, now + 1000));
  leave_lease(run, "of_what_is_gone.1", lease_of(9, now));
  write_file(run.path() / "train" / "followers" / "torn.json", R"({"file": ")");
  write_file(run.path() / "train" / "followers" / "long.json", std::string(5000, ' '));
  std::filesystem::create_symlink("/etc/passwd", run.path() / "train" / "followers" / "link.json");
  BOOST_TEST(run.run().list("train")[0].protected_by == std::vector<std::string>{"latest"},
             per_element());
  const std::vector<store::Lease> live = store::live_leases(folder_of(writer.run()), "train", now);
  BOOST_TEST_REQUIRE(live.size() == 1u);
  BOOST_TEST(live[0].name == "of_what_is_gone.1");
  for (std::uint64_t step = 2; step <= 5; ++step) save(writer, step);
  BOOST_TEST(steps_of(run.run().list("train")) == Steps{5}, per_element());
}

BOOST_AUTO_TEST_CASE(a_follower_that_is_killed_leaves_a_lease_that_ends) {
  const TemporaryRun run(chain_config());
  RunWriter writer = run.writer();
  save(writer, 1);
  int ready[2];
  BOOST_TEST_REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    store::HeldLease lease(folder_of(run.run()), "train", 5);
    lease.hold(file_of(1), 1);
    static_cast<void>(::write(ready[1], "1", 1));
    for (;;) ::pause();
  }
  char byte = 0;
  BOOST_TEST(::read(ready[0], &byte, 1) == 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  const store::RunFolder& folder = folder_of(writer.run());
  std::uint64_t now = store::now_seconds();
  const std::vector<std::string> names = list_folder(run.path() / "train" / "followers");
  BOOST_TEST_REQUIRE(names.size() == 1u);
  const std::vector<store::Lease> left = store::live_leases(folder, "train", now - 1);
  BOOST_TEST_REQUIRE(left.size() == 1u);
  BOOST_TEST(left[0].process == static_cast<std::uint64_t>(child));
  BOOST_TEST(store::live_leases(folder, "train", left[0].renewed_at + 6).empty());
  // A day later the next writer sweeps it up.
  store::sweep_leases(folder, "train", now + 86'000);
  BOOST_TEST(list_folder(run.path() / "train" / "followers").size() == 1u);
  store::sweep_leases(folder, "train", now + 86'500);
  BOOST_TEST(list_folder(run.path() / "train" / "followers").empty());
}

BOOST_AUTO_TEST_CASE(a_forked_child_leaves_the_lease_of_its_parent) {
  const TemporaryRun run(chain_config());
  RunWriter writer = run.writer();
  save(writer, 1);
  auto lease = std::make_unique<store::HeldLease>(folder_of(writer.run()), "train");
  lease->hold(file_of(1), 1);
  const pid_t child = ::fork();
  if (child == 0) {
    bool was_refused = false;
    try {
      lease->renew();
    } catch (const UsageError&) {
      was_refused = true;
    }
    lease.reset();
    ::_exit(was_refused ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  BOOST_TEST(status == 0);
  BOOST_TEST(list_folder(run.path() / "train" / "followers").size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_lease_of_a_bad_time_or_phase_is_refused) {
  const TemporaryRun run(chain_config());
  const Run opened = run.run();
  for (const std::uint64_t seconds : {std::uint64_t{0}, store::kMostLeaseSeconds + 1})
    expect<UsageError>([&] { store::HeldLease(folder_of(opened), "train", seconds); },
                       ErrorCode::bad_argument);
  expect<UsageError>([&] { store::HeldLease(folder_of(opened), "phase9"); }, ErrorCode::not_found);
}

BOOST_AUTO_TEST_SUITE_END()
