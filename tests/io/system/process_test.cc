#include "io/system/process.h"

#include <sys/resource.h>

#include <chrono>
#include <latch>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "boost_test.h"
#include "support/errors.h"
#include "support/fault.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(process)

BOOST_AUTO_TEST_CASE(a_thread_and_those_it_starts_get_nicer_and_others_do_not) {
  const int before = ::getpriority(PRIO_PROCESS, 0);
  int own = 0;
  int child = 0;
  std::thread([&] {
    thalia::io::be_nice(0);
    own = ::getpriority(PRIO_PROCESS, 0);
    BOOST_TEST(own == before);
    thalia::io::be_nice(1);
    own = ::getpriority(PRIO_PROCESS, 0);
    std::thread([&] { child = ::getpriority(PRIO_PROCESS, 0); }).join();
  }).join();
  const int expected = before < 19 ? before + 1 : 19;
  BOOST_TEST(own == expected);
  BOOST_TEST(child == expected);
  BOOST_TEST(::getpriority(PRIO_PROCESS, 0) == before);
}

BOOST_AUTO_TEST_CASE(a_forked_child_is_told_from_the_process_that_made_something) {
  const io::OwnProcess process;
  BOOST_TEST(process.is_this());
  process.require("the thing");
  const Outcome outcome = run_with_faults({}, [&] {
    if (!process.is_this()) process.require("the thing", "path");
  });
  BOOST_TEST(outcome.kind == Outcome::Kind::other_error);
  BOOST_TEST(outcome.message.find("path: the thing belongs to process") != std::string::npos,
             outcome.message);
}

BOOST_AUTO_TEST_CASE(a_process_that_is_there_is_told_from_one_that_is_not) {
  BOOST_TEST(io::is_process(io::process_id()));
  BOOST_TEST(io::is_process(1));
  // The kernel gives no number of 4,194,304 or more.
  for (const std::int64_t id : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{4'194'304},
                                (std::int64_t{1} << 32) + io::process_id()})
    BOOST_TEST(!io::is_process(id), id);
}

BOOST_AUTO_TEST_CASE(a_forked_child_never_waits_for_a_mutex_that_its_parent_holds) {
  io::ProcessMutex mutex("the thing");
  const std::lock_guard lock(mutex);
  const Outcome outcome = run_with_faults({}, [&] { const std::lock_guard other(mutex); });
  BOOST_TEST(outcome.message.find("the thing belongs to process") != std::string::npos,
             outcome.message);
}

BOOST_AUTO_TEST_CASE(no_process_is_forked_while_what_all_share_is_changed) {
  static std::mutex& mutex = *new std::mutex;
  static bool& is_whole = *new bool(false);
  io::hold_over_forks(mutex);
  std::latch is_locked(1);
  const std::jthread other([&] {
    const std::lock_guard lock(mutex);
    is_locked.count_down();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    is_whole = true;
  });
  is_locked.wait();
  const Outcome outcome = run_with_faults({}, [] {
    if (!mutex.try_lock() || !is_whole) throw std::runtime_error("not whole");
    mutex.unlock();
  });
  BOOST_TEST((outcome.kind == Outcome::Kind::returned), outcome.message);
}

BOOST_AUTO_TEST_CASE(a_fork_does_not_wait_for_good) {
  static std::timed_mutex& mutex = *new std::timed_mutex;
  io::hold_over_forks(mutex, std::chrono::milliseconds(1));
  const auto tries = [] {
    if (!mutex.try_lock()) throw std::runtime_error("locked");
    mutex.unlock();
  };
  {
    std::latch is_locked(1);
    std::latch has_forked(1);
    const std::jthread other([&] {
      const std::lock_guard lock(mutex);
      is_locked.count_down();
      has_forked.wait();
    });
    is_locked.wait();
    const Outcome outcome = run_with_faults({}, tries);
    BOOST_TEST((outcome.kind == Outcome::Kind::returned), outcome.message);
    BOOST_TEST(!mutex.try_lock());
    has_forked.count_down();
  }
  const Outcome outcome = run_with_faults({}, tries);
  BOOST_TEST((outcome.kind == Outcome::Kind::returned), outcome.message);
  tries();
}

BOOST_AUTO_TEST_SUITE_END()
