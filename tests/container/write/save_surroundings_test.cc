// Saves on file systems that are really full or read-only, under limits, and with signals in the
// middle: the old file is intact, the folder holds nothing more, the error says errno and offset.
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <stdexcept>

#include "boost_test.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/sample.h"
#include "thalia/error.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;
using boost::test_tools::per_element;
using Names = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(save_surroundings)

namespace {

Sample sample_of(std::uint64_t bytes) {
  return {.regions = {{{.name = "r"}, {dense_tensor("t", DType::u8, {bytes})}}}, .connections = {}};
}

SaveOptions options_with(IoMode io, Durability durability = Durability::full) {
  SaveOptions options = steady_options();
  options.io = io;
  options.output.durability = durability;
  options.work.threads = 2;
  return options;
}

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

// An empty file system of 8 MiB over `folder`, for this process alone. @throws where the machine
// lets nobody mount one.
void mount_small(const std::filesystem::path& folder) {
  const bool apart = ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
  require(apart && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
              ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=8m") == 0,
          "no mount");
}

// Runs `work` in a child that has a small file system in the folder.
void with_small_disk(const std::function<void(const std::filesystem::path&)>& work) {
  const TemporaryFolder folder;
  const Outcome outcome = run_with_faults({}, [&] {
    mount_small(folder.path());
    work(folder.path());
  });
  if (outcome.message == "no mount") {
    BOOST_TEST_MESSAGE("nobody may mount a file system here: skipped");
    return;
  }
  BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
}

// A save of `sample` that must fail with this errno, name the place, and change nothing.
void require_failure(const std::filesystem::path& path, const Sample& sample,
                     const SaveOptions& options, int errno_value, bool says_offset) {
  const std::string old = read_file(path);
  try {
    save(path, sample, options);
    throw std::runtime_error("saved");
  } catch (const IoError& error) {
    require(error.errno_value() == errno_value, error.what());
    require(error.context().path.find(path.parent_path().string()) == 0, error.what());
    require(error.context().offset.has_value() == says_offset, error.what());
  }
  require(read_file(path) == old, "another file");
  require(list_folder(path.parent_path()) == Names{path.filename().string()},
          "a temporary is left");
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_disk_that_is_really_full_leaves_the_old_file) {
  for (const Codec codec : {Codec::none, Codec::lz4}) {
    with_small_disk([&](const std::filesystem::path& folder) {
      SaveOptions options = options_with(IoMode::automatic);
      options.compression.codec = codec;  // the bytes look random: nothing shrinks
      save(folder / "f", sample_of(1'000'000), options);
      require_failure(folder / "f", sample_of(20'000'000), options, ENOSPC, true);
      save(folder / "f", sample_of(2'000'000), options);  // there is room again
      require(verify(folder / "f").ok(), "damaged");
    });
  }
}

BOOST_AUTO_TEST_CASE(a_disk_that_is_really_read_only_leaves_the_old_file) {
  with_small_disk([](const std::filesystem::path& folder) {
    const SaveOptions options = options_with(IoMode::automatic);
    save(folder / "f", sample_of(1'000'000), options);
    require(::mount("none", folder.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0,
            "no mount");
    require_failure(folder / "f", sample_of(1'000'000), options, EROFS, false);
  });
}

BOOST_AUTO_TEST_CASE(a_limit_in_the_middle_of_direct_and_buffered_writes_leaves_the_old_file) {
  for (const IoMode io : {IoMode::direct, IoMode::buffered}) {
    const TemporaryFolder folder;
    const Outcome outcome = run_with_faults({}, [&] {
      save(folder / "f", small_sample());
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{4 << 20, 4 << 20};
      require(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "no limit");
      require_failure(folder / "f", sample_of(12'000'000), options_with(io), EFBIG, true);
    });
    BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
  }
}

// Space that cannot be reserved shows early; without that, it is the writes in the ring that fail.
BOOST_AUTO_TEST_CASE(direct_writes_that_fail_half_way_leave_the_old_file) {
  const TemporaryFolder folder;
  const Outcome outcome =
      run_with_faults({{.call = SYS_fallocate, .errno_value = EOPNOTSUPP}}, [&] {
        save(folder / "f", small_sample());
        ::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{4 << 20, 4 << 20};
        require(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "no limit");
        require_failure(folder / "f", sample_of(12'000'000), options_with(IoMode::direct), EFBIG,
                        true);
      });
  BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
}

BOOST_AUTO_TEST_CASE(signals_with_a_handler_do_not_disturb_a_save) {
  for (const IoMode io : {IoMode::direct, IoMode::buffered}) {
    const TemporaryFolder folder;
    const Outcome outcome = run_with_faults({}, [&] {
      struct sigaction action {};
      action.sa_handler = [](int) {};  // no SA_RESTART: calls that wait end with EINTR
      require(::sigaction(SIGALRM, &action, nullptr) == 0, "no handler");
      const itimerval often{{0, 200}, {0, 200}};
      require(::setitimer(ITIMER_REAL, &often, nullptr) == 0, "no timer");
      for (int round = 0; round < 3; ++round)
        save(folder / "f", sample_of(12'000'000), options_with(io));
      const itimerval never{};
      ::setitimer(ITIMER_REAL, &never, nullptr);
      require(verify(folder / "f").ok(), "damaged");
      require(list_folder(folder.path()) == Names{"f"}, "a temporary is left");
    });
    BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
  }
}

BOOST_AUTO_TEST_CASE(a_signal_that_ends_the_process_leaves_the_old_file) {
  const TemporaryFolder folder;
  save(folder / "f", small_sample());
  const std::string old = read_file(folder / "f");
  for (const IoMode io : {IoMode::direct, IoMode::buffered}) {
    const Outcome outcome = run_with_faults({}, [&] {
      ::signal(SIGTERM, SIG_DFL);
      SaveOptions options = options_with(io);
      options.work.progress = [](std::uint64_t done, std::uint64_t) {
        if (done > 0) ::raise(SIGTERM);
      };
      save(folder / "f", sample_of(12'000'000), options);
    });
    BOOST_TEST(outcome.message == "killed by signal " + std::to_string(SIGTERM));
    BOOST_TEST((read_file(folder / "f") == old));
    // An unnamed temporary goes with its process; one with a name may stay, and is nobody's
    // checkpoint.
    for (const std::string& name : list_folder(folder.path()))
      BOOST_TEST((name == "f" || name.find(".thalia-tmp") != std::string::npos), name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
