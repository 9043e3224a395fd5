#include "base/suggestion.h"

#include <string>
#include <string_view>

#include "boost_test.h"

using thalia::Suggestion;

BOOST_AUTO_TEST_SUITE(suggestion)

namespace {

std::string nearest(std::string_view word) {
  Suggestion suggestion(word);
  for (const char* name : {"info", "ls", "cat", "verify", "convert"}) suggestion.offer(name);
  return suggestion.best();
}

}  // namespace

BOOST_AUTO_TEST_CASE(one_slip_is_understood) {
  BOOST_TEST(nearest("verfiy") == "verify");
  BOOST_TEST(nearest("verify") == "verify");
  BOOST_TEST(nearest("conver") == "convert");
  BOOST_TEST(nearest("act") == "cat");
  BOOST_TEST(nearest("l") == "ls");
}

BOOST_AUTO_TEST_CASE(other_words_are_not_guessed_at) {
  BOOST_TEST(nearest("zebra") == "");
  BOOST_TEST(nearest("xyz") == "");
  BOOST_TEST(nearest(std::string(100000, 'c')) == "");
}

BOOST_AUTO_TEST_CASE(is_told_as_a_question) {
  Suggestion suggestion("cortx");
  BOOST_TEST(suggestion.text() == "");
  suggestion.offer("thalamus");
  BOOST_TEST(suggestion.text() == "");
  suggestion.offer("cortex");
  BOOST_TEST(suggestion.text() == ", did you mean 'cortex'?");
}

BOOST_AUTO_TEST_SUITE_END()
