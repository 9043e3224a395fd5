// The harness itself: that faults strike where they should and nowhere else.
#include "support/fault.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <utility>

#include "boost_test.h"
#include "io/system/posix_error.h"

using namespace thalia;
using test::ArgumentCondition;
using test::Fault;
using test::Outcome;
using test::run_with_faults;

BOOST_AUTO_TEST_SUITE(fault)

namespace {

// Without a fault, a bad descriptor gives EBADF.
Outcome call_with_argument(const std::vector<Fault>& faults, std::uint64_t argument) {
  return run_with_faults(faults, [argument] {
    if (::syscall(SYS_fcntl, -1, F_GETFD, argument) == -1) io::throw_errno("fcntl", "path");
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(work_without_faults_returns) {
  BOOST_TEST(run_with_faults({}, [] {}).kind == Outcome::Kind::returned);
}

BOOST_AUTO_TEST_CASE(the_named_call_fails_with_the_errno) {
  const Outcome outcome = run_with_faults({{SYS_getppid, ENETDOWN}}, [] {
    if (::syscall(SYS_getppid) == -1) io::throw_errno("getppid", "path");
  });
  BOOST_TEST(outcome.kind == Outcome::Kind::io_error);
  BOOST_TEST(outcome.errno_value == ENETDOWN);
  BOOST_TEST(outcome.message.find("path: getppid failed") == 0u);
}

BOOST_AUTO_TEST_CASE(other_calls_work) {
  const Outcome outcome = run_with_faults({{SYS_getppid, ENETDOWN}}, [] {
    if (::syscall(SYS_getpid) == -1) io::throw_errno("getpid", "path");
  });
  BOOST_TEST(outcome.kind == Outcome::Kind::returned);
}

BOOST_AUTO_TEST_CASE(kills_at_the_call) {
  const Outcome outcome = run_with_faults({{SYS_getppid}}, [] { ::syscall(SYS_getppid); });
  BOOST_TEST(outcome.kind == Outcome::Kind::killed);
}

BOOST_AUTO_TEST_CASE(conditions_look_at_all_64_bits_of_the_argument) {
  constexpr std::uint64_t k4 = 4ull << 32, k5 = 5ull << 32, k6 = 6ull << 32;
  struct {
    ArgumentCondition when;
    std::uint64_t argument;
    bool strikes;
  } const cases[] = {
      {ArgumentCondition::at_least(2, 100), 99, false},
      {ArgumentCondition::at_least(2, 100), 100, true},
      {ArgumentCondition::at_least(2, 100), k4, true},
      {ArgumentCondition::at_least(2, k5 | 7), k5 | 6, false},
      {ArgumentCondition::at_least(2, k5 | 7), k5 | 7, true},
      {ArgumentCondition::at_least(2, k5 | 7), k4 | 9, false},
      {ArgumentCondition::at_least(2, k5 | 7), k6, true},
      {ArgumentCondition::has_bits(2, 6), 2, false},
      {ArgumentCondition::has_bits(2, 6), 7, true},
      {ArgumentCondition::has_bits(2, k4 | 1), 1, false},
      {ArgumentCondition::has_bits(2, k4 | 1), k5 | 3, true},
      {ArgumentCondition::equals(2, k4 | 1), k4 | 1, true},
      {ArgumentCondition::equals(2, k4 | 1), k5 | 1, false},
      {ArgumentCondition::equals(2, k4 | 1), k4 | 3, false},
  };
  for (const auto& c : cases) {
    const Outcome outcome = call_with_argument({{SYS_fcntl, ENETDOWN, c.when}}, c.argument);
    BOOST_TEST(outcome.errno_value == (c.strikes ? ENETDOWN : EBADF),
               "argument " << c.argument << " against " << c.when.value);
  }
}

BOOST_AUTO_TEST_CASE(the_first_of_several_faults_that_fits_counts) {
  const std::vector<Fault> faults = {{SYS_fcntl, ENETDOWN, ArgumentCondition::at_least(2, 10)},
                                     {SYS_fcntl, ENOTBLK}};
  BOOST_TEST(call_with_argument(faults, 9).errno_value == ENOTBLK);
  BOOST_TEST(call_with_argument(faults, 10).errno_value == ENETDOWN);
}

BOOST_AUTO_TEST_CASE(other_ends_are_told_apart) {
  const Outcome thrown = run_with_faults({}, [] { throw std::runtime_error("broken"); });
  BOOST_TEST(thrown.kind == Outcome::Kind::other_error);
  BOOST_TEST(thrown.message == "broken");
  const Outcome left = run_with_faults({}, [] { ::_exit(3); });
  BOOST_TEST(left.kind == Outcome::Kind::other_error);
  BOOST_TEST(left.message == "exit code 3");
  const Outcome shot = run_with_faults({}, [] { ::raise(SIGKILL); });
  BOOST_TEST(shot.kind == Outcome::Kind::killed);
}

BOOST_AUTO_TEST_SUITE_END()
