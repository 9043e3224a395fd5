#include "base/steps.h"

#include <stdexcept>
#include <string>

#include "boost_test.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(steps)

namespace {

[[noreturn]] void fail_io() {
  throw IoError("write", 28, {});
}
[[noreturn]] void fail_usage() {
  throw UsageError(ErrorCode::bad_argument, "no", {});
}

}  // namespace

BOOST_AUTO_TEST_CASE(calls_return_what_they_made_until_the_last_one) {
  Steps steps("the file", "path");
  BOOST_TEST(steps.run([] { return 1; }) == 1);
  BOOST_TEST(steps.check_and_run([] { return std::string("a"); }) == "a");
  BOOST_TEST(steps.finish([] { return 3; }) == 3);
  BOOST_CHECK_EXCEPTION(steps.run([] {}), UsageError,
                        says(ErrorCode::wrong_state, "path", "finished before"));
  BOOST_CHECK_EXCEPTION(steps.finish([] {}), UsageError, has_code(ErrorCode::wrong_state));
}

BOOST_AUTO_TEST_CASE(a_call_that_fails_ends_all_and_is_told_of) {
  const auto fail_other = [] { throw std::runtime_error("other"); };
  for (int way = 0; way < 4; ++way) {
    int abandoned = 0;
    Steps steps("the file", "path", [&] { ++abandoned; });
    switch (way) {
      case 0:
        BOOST_CHECK_EXCEPTION(steps.run(fail_io), IoError, says(ErrorCode::io, "path"));
        break;
      case 1:
        BOOST_CHECK_THROW(steps.check_and_run(fail_io), IoError);
        break;
      case 2:
        BOOST_CHECK_THROW(steps.run(fail_usage), UsageError);
        break;
      default:
        BOOST_CHECK_THROW(steps.finish(fail_other), std::runtime_error);
    }
    BOOST_TEST(abandoned == 1);
    BOOST_CHECK_EXCEPTION(steps.finish([] {}), UsageError,
                          says(ErrorCode::wrong_state, "the file failed before"));
    BOOST_TEST(abandoned == 1);
  }
}

BOOST_AUTO_TEST_CASE(a_call_within_another_one_is_refused_and_changes_nothing) {
  Steps steps("the file", "path");
  const auto refused = says(ErrorCode::wrong_state, "path: the file is in use");
  steps.run([&] {
    BOOST_CHECK_EXCEPTION(steps.run([] {}), UsageError, refused);
    BOOST_CHECK_EXCEPTION(steps.check_and_run([] {}), UsageError, refused);
    BOOST_CHECK_EXCEPTION(steps.finish([] {}), UsageError, refused);
  });
  BOOST_TEST(steps.is_open());
  // Let through, it ends the outer one.
  BOOST_CHECK_EXCEPTION(steps.run([&] { steps.finish([] {}); }), UsageError, refused);
  BOOST_TEST(!steps.is_open());
}

BOOST_AUTO_TEST_CASE(arguments_that_are_refused_may_be_corrected) {
  Steps steps("the file");
  BOOST_CHECK_THROW(steps.check_and_run(fail_usage), UsageError);
  BOOST_TEST(steps.is_open());
  steps.finish([] {});
}

BOOST_AUTO_TEST_SUITE_END()
