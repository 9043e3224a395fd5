#include "codec/chunk/filter.h"

#include <algorithm>
#include <string>
#include <vector>

#include "boost_test.h"
#include "format/chunk.h"
#include "support/bytes.h"
#include "thalia/error.h"

using namespace thalia;
using codec::apply_filter;
using codec::Content;
using codec::filters_for;
using codec::undo_filter;
using format::Filter;
using test::random_bytes;

BOOST_AUTO_TEST_SUITE(chunk_filter)

namespace {

std::vector<std::byte> bytes_from(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (const int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

std::vector<std::byte> filtered(Filter filter, ByteSpan raw) {
  std::vector<std::byte> out(raw.size());
  apply_filter(filter, raw, out);
  return out;
}

std::vector<Filter> all_filters() {
  std::vector<Filter> filters;
  for (std::uint8_t code = 0; code < format::kFilterCount; ++code) filters.push_back(Filter{code});
  return filters;
}

}  // namespace

// By hand, from docs/format/format.md, "Chunks".
BOOST_AUTO_TEST_CASE(filters_move_bytes_as_the_format_says) {
  const auto raw = bytes_from({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  BOOST_TEST((filtered(Filter::none, raw) == raw));
  BOOST_TEST(
      (filtered(Filter::byte_planes_2, raw) == bytes_from({1, 3, 5, 7, 9, 2, 4, 6, 8, 10, 11})));
  BOOST_TEST(
      (filtered(Filter::byte_planes_4, raw) == bytes_from({1, 5, 2, 6, 3, 7, 4, 8, 9, 10, 11})));
  BOOST_TEST((filtered(Filter::byte_planes_8, raw) == raw));
  // 0x100, 0x1FF, 0x1FE: then 0xFF, and -1 in all four bytes.
  const auto ascending = bytes_from({0, 1, 0, 0, 0xFF, 1, 0, 0, 0xFE, 1, 0, 0, 7});
  BOOST_TEST((filtered(Filter::difference_planes_4, ascending) ==
              bytes_from({0, 0xFF, 0xFF, 1, 0, 0xFF, 0, 0, 0xFF, 0, 0, 0xFF, 7})));
  const auto wide = bytes_from({1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9});
  BOOST_TEST(
      (filtered(Filter::difference_planes_8, wide) ==
       bytes_from({1, 0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF, 0, 0xFF, 9})));
}

BOOST_AUTO_TEST_CASE(every_length_at_every_address_comes_back) {
  const auto source = random_bytes(400);
  std::vector<std::byte> planes(420);
  std::vector<std::byte> back(420);
  for (const Filter filter : all_filters()) {
    for (std::size_t length = 0; length <= 300; ++length) {
      const std::size_t shift = length % 9;
      const ByteSpan raw = ByteSpan(source).subspan(shift, length);
      const MutableByteSpan out = MutableByteSpan(planes).subspan(8 - shift % 8, length);
      const MutableByteSpan again = MutableByteSpan(back).subspan(shift % 3, length);
      apply_filter(filter, raw, out);
      undo_filter(filter, out, again);
      BOOST_TEST(std::ranges::equal(again, raw), static_cast<int>(filter) << ", " << length);
    }
  }
}

BOOST_AUTO_TEST_CASE(any_bytes_are_those_of_some_chunk) {
  const auto source = random_bytes(1003);
  for (const Filter filter : all_filters()) {
    std::vector<std::byte> raw(source.size());
    undo_filter(filter, source, raw);
    BOOST_TEST((filtered(filter, raw) == source));
  }
}

BOOST_AUTO_TEST_CASE(filters_of_other_versions_are_unsupported) {
  std::vector<std::byte> in(8), out(8);
  for (const int code : {int{format::kFilterCount}, 255}) {
    const auto filter = static_cast<Filter>(code);
    BOOST_CHECK_THROW(codec::check_filter(filter), UnsupportedError);
    BOOST_CHECK_THROW(apply_filter(filter, in, out), UnsupportedError);
    BOOST_CHECK_THROW(undo_filter(filter, in, out), UnsupportedError);
  }
}

BOOST_AUTO_TEST_CASE(candidates_have_the_width_of_the_elements) {
  const auto are = [](codec::ElementLayout layout, std::vector<Filter> filters) {
    return std::ranges::equal(filters_for(layout), filters);
  };
  BOOST_TEST(are({}, {Filter::none}));
  BOOST_TEST(are({Content::floats, 1, 4}, {Filter::none}));
  BOOST_TEST(are({Content::floats, 2, 8}, {Filter::none, Filter::byte_planes_2}));
  BOOST_TEST(are({Content::floats, 4, 8}, {Filter::none, Filter::byte_planes_4}));
  BOOST_TEST(are({Content::floats, 8, 11}, {Filter::none, Filter::byte_planes_8}));
  BOOST_TEST(are({Content::integers, 2}, {Filter::none, Filter::byte_planes_2}));
  for (const Content content : {Content::integers, Content::indices}) {
    BOOST_TEST(
        are({content, 4}, {Filter::none, Filter::byte_planes_4, Filter::difference_planes_4}));
    BOOST_TEST(
        are({content, 8}, {Filter::none, Filter::byte_planes_8, Filter::difference_planes_8}));
  }
}

BOOST_AUTO_TEST_SUITE_END()
