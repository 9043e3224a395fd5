// Deltas and resolved files whose saves are killed at each of their system calls, or fail at them:
// what is at the path is the old file or the new one, and opens.
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>

#include "state/delta/check.h"
#include "support/errors.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/killed_at.h"
#include "support/sanitizers.h"
#include "thalia/error.h"
#include "thalia/formats/any_file.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(delta_crash)

namespace {

namespace fs = std::filesystem;

SampleState sample(std::uint64_t step) {
  std::mt19937_64 random(1);
  Tensor few = random_tensor(DType::f32, {2000}, random);
  few.mutable_as<float>()[step] = 1.5f;
  Tensor moved = normal_tensor({3000}, random);
  for (float& value : moved.mutable_as<float>()) value *= 1 + 1e-4f * static_cast<float>(step);
  return {.regions = {{"a", {{"few", {few}}, {"moved", {moved}}}}}, .steps = step};
}

// A base, a delta on it, and a file that the next save replaces.
struct Files {
  Files() {
    save_full(sample(0), base);
    first_saved = save_delta(sample(1), base, first);
    save_delta(sample(2), first, target);
    old = read_file(target);
  }
  TemporaryFolder folder;
  fs::path base = folder / "base.thalia";
  fs::path first = folder / "1.delta.thalia";
  fs::path target = folder / "target.thalia";
  std::string old;
  DeltaResult first_saved;
};

// One thread, so that the calls are the same ones each time.
struct Way {
  const char* name;
  std::function<void(const Files&)> save;
};

const std::vector<Way> kWays = {
    {"delta against files",
     [](const Files& files) {
       write_delta(state_source(sample(3)),
                   ChainReader::open(files.first, {.read = {.work = {.threads = 1}}}), files.target,
                   {.save = {.work = {.threads = 1}}});
     }},
    {"delta against memory",
     [](const Files& files) {
       const SavedState base{.path = files.first,
                             .identity = files.first_saved.identity,
                             .state = state_source(sample(1)),
                             .digests = files.first_saved.digests};
       write_delta(state_source(sample(3)), base, files.target, {.save = {.work = {.threads = 1}}});
     }},
    {"resolve", [](const Files& files) {
       resolve(files.first, files.target, {.read = {.work = {.threads = 1}}},
               {.work = {.threads = 1}});
     }}};

// @return whether it is the new file.
bool check_old_or_new(const Files& files) {
  BOOST_TEST(verify(files.target).ok());
  const bool is_old = read_file(files.target) == files.old;
  const ChainReader chain = ChainReader::open(files.target);
  check_chain(chain, sample(chain.reader().header().training_steps));
  BOOST_TEST((is_old == (chain.depth() == 2 && chain.reader().header().training_steps == 2)));
  return !is_old;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_kill_at_any_system_call_leaves_the_old_file_or_the_new) {
  for (const Way& way : kWays) {
    unsigned seen_old = 0;
    for (unsigned call = 0;; call += kCallStep) {
      BOOST_TEST_CONTEXT(way.name << ", call " << call) {
        const Files files;
        const End end = run_killed_at(call, [&] { way.save(files); });
        BOOST_TEST_REQUIRE(bool(end != End::failed));
        const bool is_new = check_old_or_new(files);
        seen_old += !is_new;
        // The files of the chain are as they were.
        check_chain(ChainReader::open(files.first), sample(1));
        if (end != End::returned) continue;
        BOOST_TEST(is_new);
        BOOST_TEST(call > 20u);  // or nothing was counted
      }
      break;
    }
    BOOST_TEST(seen_old * kCallStep > 15u);
  }
}

BOOST_AUTO_TEST_CASE(a_state_that_is_resolved_has_no_name_and_nothing_of_it_is_left) {
  const auto names = [](const fs::path& folder) {
    std::vector<std::string> found;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
      found.push_back(entry.path().string());
    std::sort(found.begin(), found.end());
    return found;
  };
  for (const bool in_temporary_folder : {false, true}) {
    for (unsigned call = 0;; call += kCallStep) {
      BOOST_TEST_CONTEXT(in_temporary_folder << ", call " << call) {
        const Files files;
        const fs::path temporary = files.folder / "tmp";
        fs::create_directory(temporary);
        const auto before = names(files.folder.path());
        const auto resolve = [&] {
          ::setenv("TMPDIR", temporary.c_str(), 1);
          const ResolvedFile resolved(files.first,
                                      in_temporary_folder ? fs::path() : files.folder.path(),
                                      {.read = {.work = {.threads = 1}}});
          if (names(files.folder.path()) != before) throw std::runtime_error("a name");
          check_chain(ChainReader::open(resolved.reader()), sample(1));
        };
        const End end = run_killed_at(call, resolve);
        BOOST_TEST_REQUIRE(bool(end != End::failed));
        BOOST_TEST((names(files.folder.path()) == before));
        if (end != End::returned) continue;
        BOOST_TEST(call > 20u);  // or nothing was counted
      }
      break;
    }
  }
}

BOOST_AUTO_TEST_CASE(a_state_that_is_resolved_goes_by_the_delta_s_name) {
  const Files files;
  // Also if the folder does not exist: it is in memory then.
  for (const fs::path& folder : {files.folder.path(), fs::path("/nowhere/at/all")}) {
    const ResolvedFile resolved(files.first, folder);
    BOOST_TEST(resolved.is_copy());
    BOOST_TEST(resolved.reader().path() == files.first);
    BOOST_CHECK_EXCEPTION(resolved.reader().region("no such one"), UsageError,
                          says(ErrorCode::not_found, files.first.c_str()));
    check_chain(ChainReader::open(resolved.reader()), sample(1));
  }
  const ResolvedFile itself(files.base, {});
  BOOST_TEST(!itself.is_copy());
}

BOOST_AUTO_TEST_CASE(a_failing_call_is_reported_and_leaves_the_old_file) {
  for (const Way& way : kWays) {
    for (const auto& [name, calls] : std::vector<std::pair<const char*, std::vector<long>>>{
             {"write", {SYS_pwrite64, SYS_pwritev, SYS_pwritev2}},
             {"fsync", {SYS_fsync}},
             {"rename", {SYS_rename, SYS_renameat, SYS_renameat2}}}) {
      BOOST_TEST_CONTEXT(way.name << ", " << name) {
        const Files files;
        std::vector<Fault> faults;
        for (const long call : calls) faults.push_back({call, ENOSPC});
        const Outcome outcome = run_with_faults(faults, [&] { way.save(files); });
        BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
        BOOST_TEST(outcome.errno_value == ENOSPC);
        BOOST_TEST(!check_old_or_new(files));
        BOOST_TEST(list_folder(files.folder.path()).size() == 3u);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
