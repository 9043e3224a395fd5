// The steps of a block by themselves. docs/format/mckp.md, "Methods".
#include <string>
#include <vector>

#include "boost_test.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/formats/mckp.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(mckp_steps)

namespace {

std::string grouped(const std::string& text, unsigned width) {
  std::vector<std::byte> out(text.size());
  group_bytes(as_byte_span(text), width, out);
  return test::text_of(out);
}

std::string ungrouped(const std::string& text, unsigned width) {
  std::vector<std::byte> out(text.size());
  ungroup_bytes(as_byte_span(text), width, out);
  return test::text_of(out);
}

std::string delta(const std::string& a, const std::string& b) {
  std::vector<std::byte> out(a.size());
  xor_bytes(as_byte_span(a), as_byte_span(b), out);
  return test::text_of(out);
}

}  // namespace

BOOST_AUTO_TEST_CASE(bytes_of_equal_significance_lie_together) {
  BOOST_TEST(grouped("aAbBcC", 2) == "abcABC");
  BOOST_TEST(grouped("abcdABCD", 4) == "aAbBcCdD");
  BOOST_TEST(grouped("", 8) == "");
  for (const unsigned width : {2u, 4u, 8u}) {
    const std::string text = "The numbers of a tensor, 32 bytes";
    BOOST_TEST(ungrouped(grouped(text.substr(0, 32), width), width) == text.substr(0, 32));
  }
}

BOOST_AUTO_TEST_CASE(equal_bytes_are_zeros_and_a_delta_is_undone_by_itself) {
  BOOST_TEST(delta("same bytes", "same bytes") == std::string(10, '\0'));
  BOOST_TEST(delta(delta("now", "was"), "was") == "now");
  BOOST_TEST(delta("", "") == "");
}

BOOST_AUTO_TEST_CASE(sizes_that_do_not_fit_are_refused) {
  std::vector<std::byte> four(4);
  std::vector<std::byte> three(3);
  BOOST_CHECK_EXCEPTION(group_bytes(three, 2, three), UsageError,
                        test::has_code(ErrorCode::size_mismatch));
  BOOST_CHECK_EXCEPTION(ungroup_bytes(three, 2, three), UsageError,
                        test::has_code(ErrorCode::size_mismatch));
  BOOST_CHECK_EXCEPTION(group_bytes(four, 3, four), UsageError,
                        test::has_code(ErrorCode::bad_argument));
  BOOST_CHECK_EXCEPTION(group_bytes(four, 2, three), UsageError,
                        test::has_code(ErrorCode::size_mismatch));
  BOOST_CHECK_EXCEPTION(xor_bytes(four, three, four), UsageError,
                        test::has_code(ErrorCode::size_mismatch));
  BOOST_CHECK_EXCEPTION(xor_bytes(three, four, three), UsageError,
                        test::has_code(ErrorCode::size_mismatch));
  BOOST_CHECK_EXCEPTION(xor_bytes(four, four, three), UsageError,
                        test::has_code(ErrorCode::size_mismatch));
}

BOOST_AUTO_TEST_SUITE_END()
