#include "base/ordered_pool.h"

#include <stdexcept>
#include <string>

#include "boost_test.h"

using thalia::OrderedPool;

BOOST_AUTO_TEST_SUITE(ordered_pool)

namespace {

struct Job {
  int number = 0;
  int result = 0;
};

// Later jobs are done sooner.
void square_slowly(Job& job) {
  std::this_thread::sleep_for(std::chrono::microseconds(200 * (3 - job.number % 4)));
  job.result = job.number * job.number;
}

}  // namespace

BOOST_AUTO_TEST_CASE(results_come_in_the_order_of_submission) {
  for (const unsigned threads : {1u, 2u, 5u}) {
    for (const std::size_t capacity : {1u, 3u, 8u}) {
      OrderedPool<Job> pool(threads, capacity, square_slowly);
      int taken = 0;
      const auto take = [&] {
        BOOST_TEST(pool.front().result == taken * taken);
        pool.pop();
        ++taken;
      };
      for (int i = 0; i < 40; ++i) {
        if (pool.full()) take();
        pool.next() = {i, 0};
        pool.submit();
      }
      while (!pool.empty()) take();
      BOOST_TEST(taken == 40);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_a_job_throws_comes_out_in_its_place) {
  for (const unsigned threads : {1u, 3u}) {
    OrderedPool<Job> pool(threads, 4, [](Job& job) {
      if (job.number == 2) throw std::runtime_error("two");
      job.result = 1;
    });
    for (int i = 0; i < 4; ++i) {
      pool.next() = {i, 0};
      pool.submit();
    }
    for (int i = 0; i < 2; ++i) {
      BOOST_TEST(pool.front().result == 1);
      pool.pop();
    }
    BOOST_CHECK_THROW(pool.front(), std::runtime_error);
  }
}

BOOST_AUTO_TEST_CASE(a_job_is_done_once_however_often_it_is_looked_at) {
  for (const unsigned threads : {1u, 3u}) {
    OrderedPool<Job> pool(threads, 2, [](Job& job) {
      ++job.result;
      if (job.number == 1) throw std::runtime_error("one");
    });
    for (int i = 0; i < 2; ++i) {
      pool.next() = {i, 0};
      pool.submit();
    }
    Job& first = pool.front();
    BOOST_TEST(&pool.front() == &first);
    BOOST_TEST(first.result == 1);
    pool.pop();
    for (int i = 0; i < 2; ++i) BOOST_CHECK_THROW(pool.front(), std::runtime_error);
    pool.pop();
    BOOST_TEST(pool.empty());
  }
}

BOOST_AUTO_TEST_CASE(jobs_nobody_takes_keep_nobody_waiting) {
  OrderedPool<Job> pool(2, 8, square_slowly);
  for (int i = 0; i < 8; ++i) {
    pool.next() = {i, 0};
    pool.submit();
  }
  BOOST_TEST(pool.full());
}

BOOST_AUTO_TEST_CASE(threads_are_started_as_jobs_come) {
  for (const std::size_t capacity : {4u, 10'000u}) {
    OrderedPool<Job> pool(200'000, capacity, square_slowly);
    BOOST_TEST(pool.threads() == 0u);
    for (int i = 0; i < 4; ++i) {
      pool.next() = {i, 0};
      pool.submit();
      BOOST_TEST(pool.threads() == static_cast<std::size_t>(i) + 1);
    }
    for (; !pool.empty(); pool.pop()) pool.front();
    for (int i = 0; i < 100; ++i) {  // one at a time
      pool.next() = {i, 0};
      pool.submit();
      pool.front();
      pool.pop();
    }
    BOOST_TEST(pool.threads() == 4u);
  }
}

BOOST_AUTO_TEST_SUITE_END()
