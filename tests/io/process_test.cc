#include "io/process.h"

#include <sys/resource.h>

#include <thread>

#include "boost_test.h"

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

BOOST_AUTO_TEST_SUITE_END()
