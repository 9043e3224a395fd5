#include "container/file/bad_blocks.h"

#include "boost_test.h"
#include "format/header.h"

using namespace thalia;
using container::BadBlocks;
using format::Extent;

BOOST_AUTO_TEST_SUITE(bad_blocks)

namespace {

// Blocks of 4 KiB; the last one of a file is shorter.
format::Header header_of(std::uint64_t blocks) {
  format::Header header{};
  header.integrity_block_log2 = 12;
  header.integrity_offset = blocks * 4096 - 64;
  return header;
}

}  // namespace

BOOST_AUTO_TEST_CASE(blocks_know_what_reaches_into_them) {
  const BadBlocks bad({1, 2, 9}, header_of(10));
  BOOST_TEST(bad.extent(0).offset == 4096u);
  BOOST_TEST(bad.extent(0).length == 4096u);
  BOOST_TEST(bad.extent(2).length == 4032u);
  const auto touched = [&](std::vector<Extent> extents) {
    std::string out;
    for (const bool one : bad.touched_by(extents)) out += one ? '1' : '0';
    return out;
  };
  BOOST_TEST(touched({}) == "000");
  BOOST_TEST(touched({{0, 4096}}) == "000");
  BOOST_TEST(touched({{0, 4097}}) == "100");
  BOOST_TEST(touched({{8191, 2}}) == "110");
  BOOST_TEST(touched({{8191, 1}, {36864, 1}}) == "101");
  BOOST_TEST(touched({{12288, 24576}}) == "000");
  BOOST_TEST(touched({{0, 40000}, {5000, 0}, {5000, 1}}) == "111");
}

BOOST_AUTO_TEST_CASE(the_first_bad_part_of_an_extent_is_told) {
  const BadBlocks bad({1, 2}, header_of(4));
  const auto first = [&](Extent extent) {
    const Extent part = bad.first_part(extent);
    return std::pair(part.offset, part.length);
  };
  BOOST_TEST((first({100, 9000}) == std::pair<std::uint64_t, std::uint64_t>(4096, 4096)));
  BOOST_TEST((first({5000, 100}) == std::pair<std::uint64_t, std::uint64_t>(5000, 100)));
  BOOST_TEST((first({100, 100}) == std::pair<std::uint64_t, std::uint64_t>(100, 100)));
}

// Looking at every block for every extent would take hours.
BOOST_AUTO_TEST_CASE(many_extents_of_many_blocks_are_told_in_one_pass) {
  constexpr std::uint64_t kMany = 1'000'000;
  std::vector<std::uint64_t> numbers(kMany);
  std::vector<Extent> extents;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    numbers[i] = 2 * i;
    extents.push_back({4096 * i, 4096 * kMany});  // of half of the blocks, each
  }
  const BadBlocks bad(std::move(numbers), header_of(2 * kMany));
  std::uint64_t touched = 0;
  for (const bool one : bad.touched_by(extents)) touched += one ? 1 : 0;
  BOOST_TEST(touched == kMany);
  for (const Extent& extent : extents)
    if (bad.first_part(extent).length > 4096) BOOST_ERROR("more than one block");
}

BOOST_AUTO_TEST_SUITE_END()
