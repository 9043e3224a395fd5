#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "boost_test.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(parallel)

BOOST_AUTO_TEST_CASE(every_job_runs_once) {
  for (const unsigned threads : {1u, 2u, 7u}) {
    std::vector<std::atomic<int>> ran(1000);
    parallel_for(ran.size(), threads, [&](std::size_t i) { ++ran[i]; });
    for (const auto& count : ran) BOOST_TEST(count == 1);
  }
}

BOOST_AUTO_TEST_CASE(first_exception_is_rethrown_and_stops_the_rest) {
  std::atomic<std::size_t> ran{0};
  BOOST_CHECK_THROW(parallel_for(1'000'000, 4,
                                 [&](std::size_t) {
                                   ++ran;
                                   throw std::runtime_error("job");
                                 }),
                    std::runtime_error);
  BOOST_TEST(ran <= 4u);
}

// The second job fails while the first still runs, and the first one's error is what is heard.
BOOST_AUTO_TEST_CASE(the_error_is_that_of_the_lowest_job) {
  std::atomic<bool> has_failed{false};
  const auto job = [&](std::size_t i) {
    if (i == 1) {
      has_failed = true;
      throw std::runtime_error("second");
    }
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!has_failed && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
    // The other thread has to have noted its error.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    throw std::runtime_error("first");
  };
  BOOST_CHECK_EXCEPTION(parallel_for(2, 2, job), std::runtime_error, [](const auto& error) {
    return std::string_view(error.what()) == "first";
  });
}

BOOST_AUTO_TEST_CASE(a_wish_for_threads_is_bounded_by_the_work_and_by_what_is_sane) {
  const unsigned cores = std::max(std::thread::hardware_concurrency(), 1u);
  const unsigned most = std::max(kMostThreads, cores);
  BOOST_TEST(resolve_threads(0) == cores);
  BOOST_TEST(resolve_threads(7) == 7u);
  BOOST_TEST(resolve_threads(200'000) == most);
  BOOST_TEST(resolve_threads(~0u) == most);
  BOOST_TEST(resolve_threads(200'000, 3) == 3u);
  BOOST_TEST(resolve_threads(2, 3) == 2u);
  BOOST_TEST(resolve_threads(0, 0) == 1u);
}

BOOST_AUTO_TEST_CASE(nothing_to_do_is_done) {
  parallel_for(0, 4, [](std::size_t) { BOOST_FAIL("no job to run"); });
}

BOOST_AUTO_TEST_SUITE_END()
