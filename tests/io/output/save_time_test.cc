#include "io/output/save_time.h"

#include <cstdlib>

#include "boost_test.h"
#include "support/errors.h"

using namespace thalia;
using test::says;

BOOST_AUTO_TEST_SUITE(save_time)

namespace {

struct SourceDate {
  explicit SourceDate(const char* text) { ::setenv("SOURCE_DATE_EPOCH", text, 1); }
  ~SourceDate() { ::unsetenv("SOURCE_DATE_EPOCH"); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(is_now_unless_the_bytes_are_to_be_equal) {
  ::unsetenv("SOURCE_DATE_EPOCH");  // as package builders set it
  BOOST_TEST(io::save_time({}) > 1'700'000'000u);
  BOOST_TEST(io::save_time({.reproducible = true}) == 0u);
}

BOOST_AUTO_TEST_CASE(is_what_the_environment_says) {
  const SourceDate date("1767225600");
  BOOST_TEST(io::save_time({}) > 1767225600u);
  BOOST_TEST(io::save_time({.reproducible = true}) == 1767225600u);
}

BOOST_AUTO_TEST_CASE(other_texts_of_the_environment_are_refused) {
  for (const char* text : {"", "now", "-1", "1.5", "17 ", "99999999999999999999"}) {
    const SourceDate date(text);
    BOOST_CHECK_EXCEPTION(io::save_time({.reproducible = true}), UsageError,
                          says(ErrorCode::bad_argument, "SOURCE_DATE_EPOCH", text));
  }
}

BOOST_AUTO_TEST_SUITE_END()
