#include "formats/source/metadata_member.h"

#include <string>

#include "boost_test.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::formats;

BOOST_AUTO_TEST_SUITE(source_metadata_members)

namespace {

// What is found under "own" if it is {"a":NUMBER}, and the keys of all other members.
std::string found_in(std::string_view metadata) {
  std::string text = "none";
  const SourceMetadataPlace place =
      find_source_metadata(metadata, "own", 8, [&](json::Value& object) {
        std::string number;
        const bool good = read_members(object, [&](std::string_view key, json::Value& member) {
          number = member.token();
          return key == "a" && member.kind() == json::Kind::number;
        });
        if (good) text = number;
        return good;
      });
  visit_others(metadata, place, 8, [&](std::string_view key, json::Value&) {
    text += ' ';
    text += key;
  });
  return text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_written_is_found) {
  const std::string text =
      source_metadata_json("own", [](JsonWriter& json) { json.member("a", 1); });
  BOOST_TEST(text == R"({"format":"own","own":{"a":1}})");
  BOOST_TEST(found_in(text) == "1");
  BOOST_TEST(found_in(R"({"own":{"a":1},"x":{},"format":"own"})") == "1 x");
  BOOST_TEST(found_in("") == "none");
  BOOST_TEST(found_in("{}") == "none");
  BOOST_CHECK_THROW(found_in("[]"), FormatError);
  BOOST_CHECK_THROW(found_in(R"({"own":{"a":1})"), FormatError);
}

BOOST_AUTO_TEST_CASE(what_is_not_of_the_form_is_a_strangers) {
  for (const char* const other :
       {R"({"a":"1"})", R"({"b":1})", R"({"a":1,"a":1})", "[]", "1", "\"a\"", "null"}) {
    const std::string metadata = std::string(R"({"format":"own","own":)") + other + "}";
    BOOST_TEST(found_in(metadata) == "none format own", other);
  }
}

BOOST_AUTO_TEST_CASE(format_is_foreign_where_it_announces_no_source_metadata) {
  BOOST_TEST(found_in(R"({"format":"own"})") == "none format");
  BOOST_TEST(found_in(R"({"format":"other","own":{"a":1}})") == "1 format");
  BOOST_TEST(found_in(R"({"format":1,"own":{"a":1}})") == "1 format");
}

BOOST_AUTO_TEST_CASE(of_several_the_first_of_the_form_counts) {
  BOOST_TEST(found_in(R"({"own":{},"own":{"a":2},"own":{"a":3}})") == " own own");
  BOOST_TEST(found_in(R"({"own":1,"own":{"a":2},"own":{"a":3}})") == "2 own own");
  BOOST_TEST(found_in(R"({"format":"own","format":"own","own":{"a":2}})") == "2 format");
}

BOOST_AUTO_TEST_CASE(texts_are_read_in_their_order) {
  const auto texts_of = [](std::string_view json) {
    std::string all;
    json::walk_value(json, 8, [&](json::Value& value) {
      std::vector<std::pair<std::string, std::string>> texts;
      if (!read_texts(value, texts)) all = "no ";
      for (const auto& [key, text] : texts) all += key + '=' + text + ' ';
    });
    return all;
  };
  BOOST_TEST(texts_of(R"({"b":"1","a":"2"})") == "b=1 a=2 ");
  BOOST_TEST(texts_of("{}").empty());
  BOOST_TEST(texts_of(R"({"a":"1","a":"2"})").starts_with("no "));
  BOOST_TEST(texts_of(R"({"a":1})") == "no ");
  BOOST_TEST(texts_of("[]") == "no ");
}

BOOST_AUTO_TEST_SUITE_END()
