#include "base/busy.h"

#include <thread>

#include "boost_test.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(busy)

BOOST_AUTO_TEST_CASE(one_call_at_a_time_begins_whichever_thread_makes_it) {
  Busy busy;
  const auto refused = says(ErrorCode::wrong_state, "p: the thing is in use");
  const auto call = [&] { const Busy::Call alone(busy, "the thing", "p"); };
  {
    const Busy::Call alone(busy, "the thing", "p");
    BOOST_CHECK_EXCEPTION(call(), UsageError, refused);
    bool is_refused = false;
    std::thread([&] {
      try {
        call();
      } catch (const UsageError& error) {
        is_refused = refused(error);
      }
    }).join();
    BOOST_TEST(is_refused);
    // A call that was refused has not ended the one that runs.
    BOOST_CHECK_EXCEPTION(call(), UsageError, refused);
  }
  call();
  std::thread(call).join();
}

BOOST_AUTO_TEST_SUITE_END()
