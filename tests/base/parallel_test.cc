#include "base/parallel.h"

#include <atomic>
#include <stdexcept>
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

BOOST_AUTO_TEST_CASE(nothing_to_do_is_done) {
  parallel_for(0, 4, [](std::size_t) { BOOST_FAIL("no job to run"); });
}

BOOST_AUTO_TEST_SUITE_END()
