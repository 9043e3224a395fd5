#include "cli/command/nearest.h"

#include <array>
#include <string>

#include "boost_test.h"

using thalia::cli::nearest;

BOOST_AUTO_TEST_SUITE(nearest_word)

namespace {
constexpr std::array<std::string_view, 5> kWords{"info", "ls", "cat", "verify", "convert"};
}

BOOST_AUTO_TEST_CASE(one_slip_is_understood) {
  BOOST_TEST(nearest("verfiy", kWords) == "verify");
  BOOST_TEST(nearest("verify", kWords) == "verify");
  BOOST_TEST(nearest("conver", kWords) == "convert");
  BOOST_TEST(nearest("act", kWords) == "cat");
  BOOST_TEST(nearest("l", kWords) == "ls");
}

BOOST_AUTO_TEST_CASE(other_words_are_not_guessed_at) {
  BOOST_TEST(nearest("zebra", kWords) == "");
  BOOST_TEST(nearest("xyz", kWords) == "");
  BOOST_TEST(nearest(std::string(100000, 'c'), kWords) == "");
}

BOOST_AUTO_TEST_SUITE_END()
