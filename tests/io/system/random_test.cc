#include "io/system/random.h"

#include <sys/time.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <vector>

#include "boost_test.h"
#include "support/fault.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(fill_random)

// The kernel stops at a signal once it has given 256 bytes.
BOOST_AUTO_TEST_CASE(signals_leave_no_bytes_out) {
  const test::Outcome outcome = test::run_with_faults({}, [] {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &action, nullptr);
    const itimerval every{.it_interval = {0, 1000}, .it_value = {0, 1000}};
    ::setitimer(ITIMER_REAL, &every, nullptr);
    std::vector<std::byte> bytes(32 << 20);
    io::fill_random(bytes);
    const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
    for (std::size_t at = 0; at < bytes.size(); at += 4096) {
      if (std::ranges::all_of(ByteSpan(bytes).subspan(at, 64), is_zero))
        throw std::runtime_error("bytes were left out");
    }
  });
  BOOST_TEST(outcome.kind == test::Outcome::Kind::returned, outcome.message);
}

BOOST_AUTO_TEST_SUITE_END()
