#include "io/folder/lock.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <thread>

#include "boost_test.h"
#include "support/errors.h"
#include "support/fault.h"
#include "support/files.h"

using namespace thalia;
using namespace thalia::test;
using io::FolderLock;

BOOST_AUTO_TEST_SUITE(folder_lock)

namespace {

auto is_held_by(const std::string& who) {
  return [who](const IoError& error) {
    return error.errno_value() == EWOULDBLOCK &&
           std::string(error.what()).find(who) != std::string::npos;
  };
}

}  // namespace

BOOST_AUTO_TEST_CASE(one_at_a_time_and_the_other_is_told_who) {
  const TemporaryFolder place;
  BOOST_TEST(!io::is_locked(place.path()));
  {
    const FolderLock first(place.path(), false);
    BOOST_TEST(!first.missing());
    BOOST_TEST(io::is_locked(place.path()));
    BOOST_CHECK_EXCEPTION(FolderLock(place.path(), false), IoError,
                          is_held_by("process " + std::to_string(::getpid()) + " ("));
    BOOST_TEST(io::lock_holder(place.path()).find("since 20") != std::string::npos);
  }
  BOOST_TEST(!io::is_locked(place.path()));
  const FolderLock second(place.path(), false);
}

BOOST_AUTO_TEST_CASE(who_waits_gets_it_or_is_stopped) {
  const TemporaryFolder place;
  std::optional<FolderLock> first(std::in_place, place.path(), false);
  std::stop_source stop;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop.request_stop();
  });
  BOOST_CHECK_THROW(FolderLock(place.path(), true, stop.get_token()), CancelledError);
  std::jthread releaser([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    first.reset();
  });
  const FolderLock second(place.path(), true);
}

BOOST_AUTO_TEST_CASE(a_killed_process_lets_go_though_one_that_it_forked_lives_on) {
  const TemporaryFolder place;
  int ready[2];
  BOOST_REQUIRE(::pipe(ready) == 0);
  const pid_t holder = ::fork();
  if (holder == 0) {
    const auto* const lock = new FolderLock(place.path(), false);
    const pid_t worker = ::fork();
    if (worker == 0) {
      // From here on it has given the lock up; before, it may not have had the processor.
      const pid_t own = ::getpid();
      [[maybe_unused]] const ssize_t told = ::write(ready[1], &own, sizeof own);
      ::pause();
      ::_exit(0);
    }
    const pid_t other = ::fork();
    if (other == 0) {
      // What it inherited, it may destroy: the lock stays with who took it.
      lock->~FolderLock();
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(other, &status, 0);
    [[maybe_unused]] const ssize_t told = ::write(ready[1], &other, sizeof other);
    ::pause();
    ::_exit(0);
  }
  // Both tell their number once they are ready, in any order.
  pid_t worker = 0;
  pid_t others[2] = {};
  BOOST_REQUIRE(::read(ready[0], &others[0], sizeof others[0]) == sizeof others[0]);
  BOOST_REQUIRE(::read(ready[0], &others[1], sizeof others[1]) == sizeof others[1]);
  for (const pid_t one : others)
    if (::kill(one, 0) == 0) worker = one;  // the other one has ended
  BOOST_REQUIRE(worker != 0);
  BOOST_CHECK_EXCEPTION(FolderLock(place.path(), false), IoError,
                        is_held_by("process " + std::to_string(holder)));
  ::kill(holder, SIGKILL);
  int status = 0;
  ::waitpid(holder, &status, 0);
  BOOST_CHECK_NO_THROW(FolderLock(place.path(), false));
  // Also where the lock was not to be had: it keeps what the test prints to open.
  ::kill(worker, SIGKILL);
  ::close(ready[0]);
  ::close(ready[1]);
}

BOOST_AUTO_TEST_CASE(a_file_system_without_locks_is_told_of) {
  const TemporaryFolder place;
  const Outcome outcome = run_with_faults({{SYS_flock, ENOLCK}}, [&] {
    const FolderLock lock(place.path(), false);
    if (!lock.missing()) throw std::runtime_error("held");
  });
  BOOST_TEST((outcome.kind == Outcome::Kind::returned), outcome.message);
}

// Nothing is left in the folder, and who waits finds it there even if who held it has removed it.
BOOST_AUTO_TEST_CASE(a_folder_is_held_without_a_file) {
  const TemporaryFolder place;
  const std::filesystem::path folder = place / "a/b";
  std::optional<io::HeldFolder> first(std::in_place, folder, Durability::none);
  std::stop_source stop;
  stop.request_stop();
  BOOST_CHECK_THROW(io::HeldFolder(folder, Durability::none, stop.get_token()), CancelledError);
  std::jthread releaser([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    first.reset();
  });
  {
    io::HeldFolder second(folder, Durability::none);
    BOOST_TEST(std::filesystem::is_empty(folder));
    second.keep();
  }
  BOOST_TEST(std::filesystem::is_empty(folder));
  std::filesystem::create_symlink("nowhere", place / "link");
  BOOST_CHECK_THROW(io::HeldFolder(place / "link", Durability::none), IoError);
}

BOOST_AUTO_TEST_SUITE_END()
