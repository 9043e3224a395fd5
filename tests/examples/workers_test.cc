#include "spiking/workers.h"

#include <atomic>
#include <stdexcept>

#include "boost_test.h"

using namespace spiking;

BOOST_AUTO_TEST_SUITE(workers)

BOOST_AUTO_TEST_CASE(each_worker_runs_each_job_once) {
  for (const unsigned count : {1u, 2u, 5u}) {
    Workers group(count);
    BOOST_TEST(group.count() == count);
    std::vector<std::atomic<int>> runs(count);
    for (int job = 0; job < 100; ++job) group.run([&](unsigned i) { ++runs[i]; });
    for (const auto& ran : runs) BOOST_TEST(ran == 100);
  }
}

BOOST_AUTO_TEST_CASE(an_exception_reaches_the_caller_and_the_next_job_runs) {
  Workers group(3);
  BOOST_CHECK_THROW(group.run([](unsigned i) {
    if (i == 2) throw std::runtime_error("job");
  }),
                    std::runtime_error);
  std::atomic<int> ran{0};
  group.run([&](unsigned) { ++ran; });
  BOOST_TEST(ran == 3);
}

BOOST_AUTO_TEST_CASE(slices_cover_everything_once) {
  for (const std::size_t count : {0u, 1u, 63u, 64u, 65u, 1000u}) {
    for (const unsigned parts : {1u, 2u, 7u, 40u}) {
      std::size_t next = 0;
      for (unsigned i = 0; i < parts; ++i) {
        const Slice slice = slice_of(count, parts, i);
        BOOST_TEST(slice.begin == next);
        BOOST_TEST((slice.begin % 64 == 0 || slice.begin == count));
        next = slice.end;
      }
      BOOST_TEST(next == count);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
