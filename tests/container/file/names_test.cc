// Names of every legal kind are found again, and illegal ones are refused.
#include <string>

#include "boost_test.h"
#include "container/file/short_name.h"
#include "container/write/same_as_sample.h"
#include "support/errors.h"
#include "support/files.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(names)

namespace {

SampleTensor byte_tensor(std::string name) {
  return dense_tensor(std::move(name), DType::u8, {1});
}

std::string utf8(char32_t c) {
  std::string out;
  if (c < 0x80) return {static_cast<char>(c)};
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr unsigned kLead[] = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(kLead[more] | c >> (6 * more));
  for (int i = more; i-- > 0;) out += static_cast<char>(0x80 | (c >> (6 * i) & 0x3F));
  return out;
}

// The first and the last character of each length, around the surrogates, and an astral one.
constexpr char32_t kCharacters[] = {0x80,   0x7FF,  0x800,   0xD7FF,  0xE000,
                                    0xFFFD, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF};

std::string short_form(std::string_view name) {
  const container::ShortName bytes = container::short_name(name);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void check_refused(const RegionSpec& spec) {
  const TemporaryFolder folder;
  Writer writer(folder / "f");
  BOOST_CHECK_EXCEPTION(writer.add_region(spec), UsageError, has_code(ErrorCode::bad_argument));
}

void check_refused(TensorSpec spec) {
  const TemporaryFolder folder;
  Writer writer(folder / "f");
  const RegionId region = writer.add_region({.name = "the region"});
  BOOST_CHECK_EXCEPTION(writer.add_tensor(region, spec), UsageError,
                        says(ErrorCode::bad_argument, "the region"));
}

// Overlong forms, a surrogate, beyond U+10FFFF, a lone continuation, a cut character.
const std::string kInvalid[] = {"\xC0\x80", "\xE0\x80\x80", "\xF0\x80\x80\x80", "\xED\xA0\x80",
                                "\x80",     "a\xE2\x82",    "\xF4\x90\x80\x80", "\xFF"};

}  // namespace

BOOST_AUTO_TEST_CASE(tensor_names_of_every_character_class_are_found) {
  SampleRegion region{.spec = {.name = "r"}, .tensors = {byte_tensor("")}};
  std::string all;
  for (char32_t c = 0; c < 0x80; ++c) {
    region.tensors.push_back(byte_tensor(utf8(c)));
    all += utf8(c);
  }
  for (const char32_t c : kCharacters) {
    region.tensors.push_back(byte_tensor(utf8(c)));
    all += utf8(c);
  }
  region.tensors.push_back(byte_tensor(all));
  // NUL, slash and dot inside; names that begin with others.
  for (const char* name : {"a", "a.b", "a/b", "ab", "a b"}) {
    if (std::string(name) != "a") region.tensors.push_back(byte_tensor(name));
  }
  region.tensors.push_back(byte_tensor(std::string("a\0b", 3)));
  region.tensors.push_back(byte_tensor(std::string("a\0", 2)));
  check_round_trip({.regions = {std::move(region)}, .connections = {}});
}

BOOST_AUTO_TEST_CASE(region_names_of_every_character_class_are_found) {
  Sample sample;
  std::string all;
  for (char32_t c = 1; c < 0x80; ++c) {
    sample.regions.push_back({{.name = utf8(c)}, {byte_tensor("t")}});
    all += utf8(c);
  }
  for (const char32_t c : kCharacters) {
    sample.regions.push_back({{.name = utf8(c)}, {byte_tensor("t")}});
    all += utf8(c);
  }
  sample.regions.push_back({{.name = all}, {byte_tensor("t")}});
  sample.connections.push_back({all, utf8(0x10FFFF), byte_tensor(""), std::nullopt});
  check_round_trip(sample);
}

BOOST_AUTO_TEST_CASE(names_of_every_length_are_found) {
  Sample sample;
  for (const std::size_t length : {1, 2, 21, 22, 23, 30, 31, 32, 33, 255, 256, 65534, 65535}) {
    sample.regions.push_back({{.name = std::string(length, 'n')},
                              {byte_tensor(std::string(length, 't')), byte_tensor("")}});
  }
  check_round_trip(sample);
}

BOOST_AUTO_TEST_CASE(regions_that_agree_in_31_bytes_stay_apart) {
  const std::string prefix(31, 'p');
  const auto tensor = [](std::uint64_t seed) {
    return dense_tensor("t", DType::u8, {9}, Role::weights, seed);
  };
  check_round_trip({.regions = {{{.name = prefix + "one"}, {tensor(1)}},
                                {{.name = prefix + "two"}, {tensor(2)}},
                                {{.name = prefix}, {tensor(3)}}},
                    .connections = {{prefix + "one", prefix + "two", tensor(4), std::nullopt},
                                    {prefix + "two", prefix + "one", tensor(5),
                                     dense_tensor("", DType::u8, {9}, Role::other)},
                                    {prefix, prefix, tensor(7), std::nullopt}}});
}

// Known answers: the digests are those of coreutils' sha256sum.
BOOST_AUTO_TEST_CASE(short_names_are_those_of_the_format) {
  const auto padded = [](std::string text) { return text + std::string(32 - text.size(), '\0'); };
  BOOST_TEST(short_form("cortex") == padded("cortex"));
  BOOST_TEST(short_form(std::string(31, 'x')) == padded(std::string(31, 'x')));
  BOOST_TEST(short_form(std::string(32, 'a')) == padded(std::string(22, 'a') + "~3ba3f5f4"));
  // The eleventh euro sign would be cut after one of its three bytes: it is left out.
  std::string euros = "x";
  for (int i = 0; i < 20; ++i) euros += "\xE2\x82\xAC";
  BOOST_TEST(short_form(euros) == padded(euros.substr(0, 22) + "~59081a3d"));
  BOOST_TEST(short_form("xy" + euros.substr(1)) ==
             padded("xy" + euros.substr(1, 18) + "~fadcb916"));
}

BOOST_AUTO_TEST_CASE(illegal_names_are_refused) {
  for (const std::string& invalid : kInvalid) {
    check_refused(RegionSpec{.name = invalid});
    check_refused(TensorSpec{.name = invalid, .shape = {}});
  }
  check_refused(RegionSpec{.name = ""});
  check_refused(RegionSpec{.name = std::string("a\0b", 3)});
  check_refused(RegionSpec{.name = std::string(65536, 'n')});
  check_refused(TensorSpec{.name = std::string(65536, 'n'), .shape = {}});
}

BOOST_AUTO_TEST_CASE(a_tensor_is_found_by_its_own_name_or_with_its_region) {
  const TemporaryFolder folder;
  save(folder / "f", {.regions = {{{.name = "a"}, {byte_tensor("only"), byte_tensor("both")}},
                                  {{.name = "b"}, {byte_tensor("both"), byte_tensor("x/y")}},
                                  {{.name = "b/x"}, {byte_tensor("y2")}}},
                      .connections = {}});
  const Reader reader = Reader::open(folder / "f");
  BOOST_TEST(Reader::region_name(reader.tensor("only")) == "a");
  BOOST_TEST(Reader::region_name(reader.tensor("b/both")) == "b");
  BOOST_TEST(reader.tensor("x/y").name() == "x/y");
  BOOST_TEST(reader.tensor("b/x/y").name() == "x/y");
  BOOST_TEST(reader.tensor("b/x/y2").name() == "y2");
  BOOST_CHECK_EXCEPTION(reader.tensor("both"), UsageError, has_code(ErrorCode::bad_argument));
  for (const char* name : {"none", "a/none", "", "/", "a/", "c/only"}) {
    BOOST_CHECK_EXCEPTION(reader.tensor(name), UsageError, has_code(ErrorCode::not_found));
  }
}

BOOST_AUTO_TEST_SUITE_END()
