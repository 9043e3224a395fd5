#include "io/memory/allocation_limit.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "boost_test.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(memory_budget)

namespace {

constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
const ReadLimits kLimits{.max_allocation_bytes = 100};

}  // namespace

BOOST_AUTO_TEST_CASE(all_that_a_call_takes_is_one_sum) {
  io::MemoryBudget budget(kLimits, 1);
  budget.take("a", 60);
  BOOST_TEST(budget.vector<std::uint32_t>("b", 10).size() == 10u);
  BOOST_TEST(budget.taken() == 100u);
  BOOST_CHECK_EXCEPTION(budget.take("c", 1), FormatError,
                        says(ErrorCode::limit_exceeded, "c", "max_allocation_bytes", "101", "100"));
  // What was refused was not taken.
  budget.take("d", 0);
  BOOST_TEST(budget.taken() == 100u);
}

BOOST_AUTO_TEST_CASE(what_a_file_holds_already_counts) {
  io::MemoryBudget budget(kLimits, 1, 90);
  BOOST_CHECK_THROW(budget.vector<double>("b", 2), FormatError);
  BOOST_TEST(budget.vector<double>("b", 1).size() == 1u);
}

BOOST_AUTO_TEST_CASE(sums_and_products_do_not_wrap) {
  io::MemoryBudget budget(kLimits, 1);
  budget.take("a", 2);
  BOOST_CHECK_THROW(budget.take("b", kAll), FormatError);
  BOOST_CHECK_THROW(budget.take("b", kAll / 2, 3), FormatError);
  BOOST_CHECK_THROW(budget.vector<std::uint64_t>("b", (kAll / 8) + 2), FormatError);
  BOOST_TEST(budget.taken() == 2u);
}

BOOST_AUTO_TEST_CASE(copies_count) {
  io::MemoryBudget budget(kLimits, 1);
  const std::string text = "0123456789";
  BOOST_TEST(budget.vector_of<char>("a", text).size() == 10u);
  BOOST_TEST(budget.taken() == 10u);
}

BOOST_AUTO_TEST_SUITE_END()
