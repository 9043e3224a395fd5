#include "base/once.h"

#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include "boost_test.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(once)

BOOST_AUTO_TEST_CASE(one_thread_does_the_work_and_all_see_it) {
  constexpr int kThreads = 8;
  Once once;
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
  Once once;
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

BOOST_AUTO_TEST_SUITE_END()
