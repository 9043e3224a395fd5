// kill -9 during a save leaves the old file or the new one.
#include <fcntl.h>
#include <sys/syscall.h>

#include "boost_test.h"
#include "container/write/crash_check.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/sample.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(crash)

namespace {

struct Step {
  const char* name;
  std::vector<long> calls;
  bool may_leave_a_temporary;
};

const std::vector<Step> kSteps = {
    {"pwritev", {SYS_pwritev}, false},
    {"pwrite", {SYS_pwrite64}, false},
    {"ftruncate", {SYS_ftruncate}, false},
    {"fsync", {SYS_fsync}, false},
    {"linkat", {SYS_linkat}, false},
    {"rename", {SYS_rename, SYS_renameat, SYS_renameat2}, true},
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_kill_at_each_call_leaves_the_old_file) {
  for (const bool unnamed : {true, false}) {
    for (const Step& step : kSteps) {
      if (!unnamed && step.calls[0] == SYS_linkat) continue;  // a named file needs no link
      BOOST_TEST_CONTEXT(step.name << ", unnamed " << unnamed) {
        const TemporaryFolder folder;
        save(folder / "f", small_sample());
        const std::string old = read_file(folder / "f");
        SaveOptions options = steady_options();
        options.output.durability = Durability::full;
        std::vector<Fault> faults;
        for (const long call : step.calls) faults.push_back({call});
        if (!unnamed)
          faults.push_back({SYS_openat, EOPNOTSUPP, ArgumentCondition::has_bits(2, O_TMPFILE)});
        const Outcome outcome =
            run_with_faults(faults, [&] { save(folder / "f", varied_sample(), options); });
        BOOST_TEST(outcome.kind == Outcome::Kind::killed, outcome.message);
        BOOST_TEST(bool(read_file(folder / "f") == old));
        const std::size_t most = !unnamed || step.may_leave_a_temporary ? 2 : 1;
        BOOST_TEST(list_folder(folder.path()).size() <= most);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_kill_at_a_random_moment_leaves_the_old_file_or_the_new) {
  check_random_kills(25);
}

BOOST_AUTO_TEST_SUITE_END()
