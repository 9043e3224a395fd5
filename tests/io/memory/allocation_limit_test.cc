#include "io/memory/allocation_limit.h"

#include <unistd.h>

#include <algorithm>

#include "boost_test.h"
#include "support/errors.h"
#include "thalia/options.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(allocation_limit)

namespace {

constexpr std::uint64_t kGiB = 1 << 30;

// The bound of a container or of the process may be lower still.
std::uint64_t memory() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

BOOST_AUTO_TEST_CASE(limits_fit_the_file_and_the_machine) {
  const std::uint64_t most = io::allocation_limit({}, ~std::uint64_t{0});
  BOOST_TEST(most <= memory() - memory() / 4);
  BOOST_TEST(io::allocation_limit({}, 0) == std::min(kGiB, most));
  BOOST_TEST(io::allocation_limit({}, 1 << 20) == std::min(kGiB, most));
  BOOST_TEST(io::allocation_limit({}, 1 << 25) == std::min(2 * kGiB, most));
}

BOOST_AUTO_TEST_CASE(what_the_caller_says_counts) {
  BOOST_TEST(io::allocation_limit({.max_allocation_bytes = 7}, 1 << 25) == 7u);
  // Any value is a limit, and none stands for another.
  for (const std::uint64_t bytes : {0ull, 1ull << 30, 1ull << 36, 1ull << 50, ~0ull})
    BOOST_TEST(io::allocation_limit({.max_allocation_bytes = bytes}, 1) == bytes);
  set_default_allocation_limit(100);
  BOOST_TEST(io::allocation_limit({}, 1 << 25) == 100u);
  BOOST_TEST(io::allocation_limit({.max_allocation_bytes = 7}, 1 << 25) == 7u);
  set_default_allocation_limit(0);
  BOOST_TEST(io::allocation_limit({}, 1 << 25) > 100u);
}

BOOST_AUTO_TEST_CASE(what_is_over_a_limit_is_refused_by_its_name) {
  const ReadLimits limits{.max_json_bytes = 10 << 20, .max_allocation_bytes = 30 << 20};
  io::MemoryBudget(limits, 1).take("payload", 30 << 20);
  BOOST_CHECK_EXCEPTION(io::MemoryBudget(limits, 1).take("payload", (30 << 20) + 1), FormatError,
                        says(ErrorCode::limit_exceeded, "payload", "max_allocation_bytes"));
  io::check_json_length("metadata", 5 << 20, limits, 1);
  BOOST_CHECK_EXCEPTION(io::check_json_length("metadata", 6 << 20, limits, 1), FormatError,
                        says(ErrorCode::limit_exceeded, "max_allocation_bytes"));
  BOOST_CHECK_EXCEPTION(io::check_json_length("metadata", 11 << 20, limits, 1), FormatError,
                        says(ErrorCode::limit_exceeded, "max_json_bytes"));
}

BOOST_AUTO_TEST_SUITE_END()
