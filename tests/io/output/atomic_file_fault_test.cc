// Every system call of a save fails once, or is the last that the process makes.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <string>
#include <vector>

#include "boost_test.h"
#include "io/file/posix_file.h"
#include "io/output/atomic_file.h"
#include "support/fault.h"
#include "support/files.h"

using namespace thalia;
using boost::test_tools::per_element;
using test::ArgumentCondition;
using test::bytes_of;
using test::Fault;
using test::list_folder;
using test::Outcome;
using test::read_file;
using test::TemporaryFolder;
using Names = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(atomic_file_fault)

namespace {

constexpr const char* kOld = "the old contents";
constexpr const char* kNew = "the new contents, longer";

enum class Way { unnamed, named, unnamed_denied };

struct Step {
  std::string name;  // as the IoError has it
  std::vector<Fault> calls;
  Durability durability = Durability::full;
};

const ArgumentCondition kAsksForUnnamed = ArgumentCondition::has_bits(2, O_TMPFILE);

std::vector<Step> steps(Way way) {
  std::vector<Step> all = {
      {"pwrite", {{SYS_pwrite64}}},
      {"pwritev", {{SYS_pwritev}}},
      {"fchmod", {{SYS_fchmod}}},
      {"fsync", {{SYS_fsync}}},
      {"fdatasync", {{SYS_fdatasync}}, Durability::data},
      {"rename", {{SYS_renameat}, {SYS_renameat2}}},
  };
  if (way == Way::unnamed) {
    all.push_back({"linkat", {{SYS_linkat}}});
    all.push_back({"open with O_TMPFILE", {{SYS_openat, 0, kAsksForUnnamed}}});
  } else {
    const auto creates = ArgumentCondition::has_bits(2, O_CREAT | O_EXCL);
    all.push_back({"open of the temporary", {{SYS_openat, 0, creates}}});
  }
  return all;
}

/// The step's calls fail with errno_value (0: kill), and the file system is as `way` wants it.
std::vector<Fault> faults_for(std::vector<Fault> calls, Way way, int errno_value) {
  for (Fault& fault : calls) fault.errno_value = errno_value;
  if (way == Way::unnamed_denied) calls.push_back({SYS_openat, EOPNOTSUPP, kAsksForUnnamed});
  return calls;
}

// Replaces a file whose mode no new file has by itself, so that fchmod is called.
Outcome replace(const std::filesystem::path& path, Way way, const std::vector<Fault>& faults,
                Durability durability = Durability::full) {
  test::write_file(path, kOld);
  BOOST_REQUIRE(::chmod(path.c_str(), 0777) == 0);
  return test::run_with_faults(faults, [&] {
    io::AtomicFile file(path,
                        {.output = {.durability = durability}, .allow_unnamed = way != Way::named});
    const ByteSpan all = bytes_of(kNew);
    io::pwrite_all(file.fd(), 0, all.first(3), file.path());
    const ByteSpan rest[] = {all.subspan(3, 4), all.subspan(7)};
    io::pwritev_all(file.fd(), 3, rest, file.path());
    file.commit();
  });
}

bool has_unnamed_files(const TemporaryFolder& folder) {
  return bool(io::UniqueFd(::open(folder.path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)));
}

template <typename Check>
void for_each_way(Check check) {
  for (const Way way : {Way::unnamed, Way::named, Way::unnamed_denied}) {
    if (way == Way::unnamed && !has_unnamed_files(TemporaryFolder())) {
      BOOST_TEST_MESSAGE("the temporary folder's file system has no O_TMPFILE: way left out");
      continue;
    }
    BOOST_TEST_CONTEXT("way " << int(way)) {
      check(way);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(without_a_fault_the_new_file_is_there) {
  for_each_way([](Way way) {
    const TemporaryFolder folder;
    const Outcome outcome = replace(folder / "f", way, faults_for({}, way, 0));
    BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
    BOOST_TEST(read_file(folder / "f") == kNew);
    BOOST_TEST(list_folder(folder.path()) == Names{"f"}, per_element());
  });
}

BOOST_AUTO_TEST_CASE(a_failing_call_leaves_the_old_file_and_no_temporary) {
  for_each_way([](Way way) {
    for (const Step& step : steps(way)) {
      for (const int errno_value : {ENOSPC, EIO}) {
        BOOST_TEST_CONTEXT(step.name << ", errno " << errno_value) {
          const TemporaryFolder folder;
          const Outcome outcome =
              replace(folder / "f", way, faults_for(step.calls, way, errno_value), step.durability);
          BOOST_TEST(outcome.kind == Outcome::Kind::io_error, outcome.message);
          BOOST_TEST(outcome.errno_value == errno_value);
          BOOST_TEST(outcome.message.find(step.name + " failed") != std::string::npos,
                     outcome.message);
          BOOST_TEST(outcome.message.find(folder.path().string()) == 0u, outcome.message);
          BOOST_TEST(read_file(folder / "f") == kOld);
          BOOST_TEST(list_folder(folder.path()) == Names{"f"}, per_element());
        }
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(a_kill_at_a_call_leaves_the_old_file_whole) {
  for_each_way([](Way way) {
    for (const Step& step : steps(way)) {
      BOOST_TEST_CONTEXT(step.name) {
        const TemporaryFolder folder;
        const Outcome outcome =
            replace(folder / "f", way, faults_for(step.calls, way, 0), step.durability);
        BOOST_TEST(outcome.kind == Outcome::Kind::killed, outcome.message);
        BOOST_TEST(read_file(folder / "f") == kOld);
        // An unnamed file leaves a trace only where the kill falls between its naming and the
        // rename.
        const bool trace =
            way == Way::unnamed ? step.name == "rename" : step.name != "open of the temporary";
        BOOST_TEST(list_folder(folder.path()).size() == (trace ? 2u : 1u));
      }
    }
  });
}

// The folder's descriptor is the first that a save opens.
BOOST_AUTO_TEST_CASE(after_the_rename_a_failing_sync_is_reported_and_the_new_file_is_whole) {
  const int folder_fd = io::UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)).get();
  const Fault sync = {SYS_fsync, 0, ArgumentCondition::equals(0, std::uint64_t(folder_fd))};
  for_each_way([&](Way way) {
    const TemporaryFolder folder;
    const Outcome failed = replace(folder / "f", way, faults_for({sync}, way, EIO));
    BOOST_TEST(failed.kind == Outcome::Kind::io_error);
    BOOST_TEST(failed.errno_value == EIO);
    BOOST_TEST(failed.message.find(folder.path().string() + ": fsync failed") == 0u,
               failed.message);
    BOOST_TEST(read_file(folder / "f") == kNew);
    BOOST_TEST(list_folder(folder.path()) == Names{"f"}, per_element());

    const Outcome killed = replace(folder / "f", way, faults_for({sync}, way, 0));
    BOOST_TEST(killed.kind == Outcome::Kind::killed);
    BOOST_TEST(read_file(folder / "f") == kNew);
    BOOST_TEST(list_folder(folder.path()) == Names{"f"}, per_element());
  });
}

BOOST_AUTO_TEST_CASE(without_durability_nothing_is_synced) {
  for_each_way([](Way way) {
    const TemporaryFolder folder;
    const Outcome outcome = replace(
        folder / "f", way, faults_for({{SYS_fsync}, {SYS_fdatasync}}, way, EIO), Durability::none);
    BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
    BOOST_TEST(read_file(folder / "f") == kNew);
  });
}

BOOST_AUTO_TEST_SUITE_END()
