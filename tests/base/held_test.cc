#include "thalia/detail/held.h"

#include <string>

#include "boost_test.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(held)

BOOST_AUTO_TEST_CASE(what_is_owned_alone_is_not_followed_after_a_move) {
  detail::Owned<std::string> first = std::make_unique<std::string>("text");
  const detail::Owned<std::string> second = std::move(first);
  BOOST_TEST(*second == "text");
  BOOST_TEST(second->size() == 4);
  const auto moved_from = says(ErrorCode::wrong_state, "moved from");
  BOOST_CHECK_EXCEPTION(*first, UsageError, moved_from);
  BOOST_CHECK_EXCEPTION(static_cast<void>(first->size()), UsageError, moved_from);
}

BOOST_AUTO_TEST_CASE(what_is_shared_stays_after_a_move) {
  detail::Shared<const std::string> first = std::make_shared<std::string>("text");
  const detail::Shared<const std::string> second = std::move(first);
  BOOST_TEST(first.get() == second.get());
  BOOST_TEST(*first == "text");
  detail::Shared<const std::string> third;
  third = std::move(first);
  BOOST_TEST(first->size() == third->size());
}

BOOST_AUTO_TEST_SUITE_END()
