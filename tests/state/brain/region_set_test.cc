#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "boost_test.h"
#include "support/errors.h"
#include "thalia/state/brain.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(region_set)

BOOST_AUTO_TEST_CASE(regions_keep_their_order_and_their_place) {
  RegionSet regions;
  BrainRegion& first = regions.add("b", {.n_neurons = 1});
  for (int i = 0; i < 100; ++i) regions.add("region " + std::to_string(i));
  BOOST_TEST(&regions.at("b") == &first);
  BOOST_TEST(regions.names().front() == "b");
  BOOST_TEST(regions.names().back() == "region 99");
  BOOST_TEST(regions.remove("region 50"));
  BOOST_TEST(!regions.contains("region 50"));
  BOOST_TEST(regions.find("region 50") == nullptr);
  BOOST_TEST(regions.size() == 100);
}

BOOST_AUTO_TEST_CASE(a_name_occurs_once) {
  RegionSet regions;
  regions.add("a");
  BOOST_TEST(expect<UsageError>([&] { regions.add("a"); }, ErrorCode::duplicate).context().region ==
             "a");
  expect<UsageError>([&] { regions.add_lazy("a", [] { return BrainRegion(); }); },
                     ErrorCode::duplicate);
  BOOST_TEST(expect<UsageError>([&] { regions.at("c"); }, ErrorCode::not_found).context().region ==
             "c");
}

BOOST_AUTO_TEST_CASE(a_lazy_region_is_read_once_by_many_threads) {
  RegionSet regions;
  std::atomic<int> reads = 0;
  regions.add_lazy("a", [&] {
    ++reads;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return BrainRegion{.n_neurons = 7};
  });
  BOOST_TEST(!regions.is_loaded("a"));
  BOOST_TEST(reads == 0);
  constexpr int kThreads = 8;
  std::latch start(kThreads);
  std::atomic<int> right = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      right += std::as_const(regions).at("a").n_neurons == 7 ? 1 : 0;
    });
  }
  threads.clear();
  BOOST_TEST(right == kThreads);
  BOOST_TEST(reads == 1);
  BOOST_TEST(regions.is_loaded("a"));
}

BOOST_AUTO_TEST_CASE(a_failed_read_is_reported_and_tried_again) {
  RegionSet regions;
  int reads = 0;
  regions.add_lazy("a", [&]() -> BrainRegion {
    if (++reads == 1) throw FormatError(ErrorCode::bad_value, "broken");
    return {.n_neurons = 2};
  });
  expect<FormatError>([&] { regions.at("a"); }, ErrorCode::bad_value);
  BOOST_TEST(!regions.is_loaded("a"));
  BOOST_TEST(regions.at("a").n_neurons == 2);
  BOOST_TEST(reads == 2);
}

BOOST_AUTO_TEST_CASE(copies_are_independent_and_stay_lazy) {
  RegionSet a;
  a.add("x", {.n_neurons = 1});
  int reads = 0;
  a.add_lazy("y", [&] {
    ++reads;
    return BrainRegion{.n_neurons = 2};
  });
  RegionSet b = a;
  BOOST_TEST(!b.is_loaded("y"));
  b.at("x").n_neurons = 5;
  BOOST_TEST(a.at("x").n_neurons == 1);
  BOOST_TEST(b.at("y").n_neurons == 2);
  BOOST_TEST(!a.is_loaded("y"));
  b.at("x").n_neurons = 1;
  BOOST_TEST((a == b));
  BOOST_TEST(reads == 2);
}

BOOST_AUTO_TEST_SUITE_END()
