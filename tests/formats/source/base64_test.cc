#include "formats/source/base64.h"

#include <string>

#include "boost_test.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(base64)

namespace {

std::string decoded(std::string_view text) {
  std::size_t wrong = 0;
  const auto bytes = formats::decode_base64(text, wrong);
  if (!bytes) return "wrong at " + std::to_string(wrong);
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

}  // namespace

// RFC 4648, section 10.
BOOST_AUTO_TEST_CASE(bytes_become_characters_and_come_back) {
  const std::pair<std::string, std::string> cases[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"},
                                                       {"\xfb\xff", "+/8="}};
  for (const auto& [bytes, text] : cases) {
    BOOST_TEST(formats::to_base64(as_byte_span(bytes)) == text);
    BOOST_TEST(decoded(text) == bytes);
    // In pieces of any size.
    std::string of_pieces;
    formats::Base64Encoder encoder;
    for (const char& c : bytes) encoder.put(as_byte_span(std::string_view(&c, 1)), of_pieces);
    encoder.finish(of_pieces);
    BOOST_TEST(of_pieces == text);
  }
  BOOST_TEST(decoded("Zm\r\n9v\n") == "foo");
}

BOOST_AUTO_TEST_CASE(the_first_wrong_character_is_told) {
  BOOST_TEST(decoded("Zm9") == "wrong at 0");
  BOOST_TEST(decoded("Zm9vZg=") == "wrong at 4");
  BOOST_TEST(decoded("Zm-v") == "wrong at 2");
  BOOST_TEST(decoded("Z===") == "wrong at 1");
  BOOST_TEST(decoded("Zg==Zg==") == "wrong at 4");
}

BOOST_AUTO_TEST_SUITE_END()
