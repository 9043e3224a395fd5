#include "io/system/process.h"

#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "boost_test.h"
#include "support/errors.h"
#include "support/fault.h"
#include "thalia/detail/once.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(once)

BOOST_AUTO_TEST_CASE(one_thread_does_the_work_and_all_see_it) {
  constexpr int kThreads = 8;
  io::Once once;
  int made = 0;  // guarded by `once` alone
  std::atomic<int> saw{0};
  std::latch together(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        together.arrive_and_wait();
        once.run([&] { ++made; });
        if (made == 1) ++saw;
      });
    }
  }
  BOOST_TEST(made == 1);
  BOOST_TEST(saw == kThreads);
}

BOOST_AUTO_TEST_CASE(work_that_throws_is_tried_again) {
  io::Once once;
  int tries = 0;
  const auto work = [&] {
    if (++tries < 3) throw std::runtime_error("work");
  };
  BOOST_CHECK_THROW(once.run(work), std::runtime_error);
  BOOST_CHECK_THROW(once.run(work), std::runtime_error);
  once.run(work);
  once.run(work);
  BOOST_TEST(tries == 3);
}

BOOST_AUTO_TEST_CASE(a_forked_child_does_not_wait_for_work_that_nobody_does_there) {
  io::Once once;
  Outcome during;
  once.run([&] { during = run_with_faults({}, [&] { once.run([] {}); }); });
  BOOST_TEST((during.kind == Outcome::Kind::other_error));
  BOOST_TEST(during.message.find("when this process was forked") != std::string::npos,
             during.message);
  // What was done before is done there, and what was not can be.
  io::Once other;
  const Outcome later = run_with_faults({}, [&] {
    once.run([] { throw std::runtime_error("again"); });
    other.run([] {});
  });
  BOOST_TEST((later.kind == Outcome::Kind::returned), later.message);
}

BOOST_AUTO_TEST_CASE(a_forked_child_does_not_wait_for_a_value_that_nobody_makes_there) {
  Outcome during;
  Lazy<int> lazy;
  lazy = Lazy<int>([&] {
    during = run_with_faults({}, [&] { static_cast<void>(lazy.get()); });
    return 1;
  });
  BOOST_TEST(lazy.get() == 1);
  BOOST_TEST((during.kind == Outcome::Kind::other_error));
  BOOST_TEST(during.message.find("when this process was forked") != std::string::npos,
             during.message);
}

BOOST_AUTO_TEST_SUITE_END()
