#include "cli/print/diff_text.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "boost_test.h"

using namespace thalia;
using namespace thalia::cli;

BOOST_AUTO_TEST_SUITE(diff_text)

namespace {

std::string printed(const Diff& diff, bool all) {
  char path[] = "/tmp/diff-text-XXXXXX";
  const int fd = ::mkstemp(path);
  BOOST_REQUIRE(fd >= 0);
  Output out(fd);
  print_diff(out, diff, all);
  out.flush();
  ::close(fd);
  std::ifstream stream(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  ::unlink(path);
  return text;
}

std::ptrdiff_t lines(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

TensorDiff changed_tensor(std::size_t number) {
  return {.name = "t" + std::to_string(number),
          .before = TensorFacts{.layout = {.shape = {2}}},
          .after = TensorFacts{.layout = {.shape = {3}}}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(ten_thousand_changed_tensors_of_a_region_stay_readable) {
  Diff diff;
  diff.regions.push_back({.name = "r", .tensor_count = 10'001});
  for (std::size_t i = 0; i < 10'000; ++i) diff.regions[0].tensors.push_back(changed_tensor(i));
  const std::string text = printed(diff, false);
  BOOST_TEST(lines(text) == 13);
  BOOST_TEST(text.find("tensors: 0 added, 0 removed, 10,000 changed, 1 the same\n") !=
             std::string::npos);
  BOOST_TEST(text.find("      and 9,990 more, which --all shows\n") != std::string::npos);
  BOOST_TEST(lines(printed(diff, true)) == 10'002);
}

BOOST_AUTO_TEST_CASE(ten_thousand_changed_regions_stay_readable) {
  Diff diff;
  for (std::size_t i = 0; i < 10'000; ++i) {
    diff.regions.push_back({.name = "r" + std::to_string(i), .tensor_count = 1});
    diff.regions[i].tensors.push_back(changed_tensor(i));
    diff.connections.push_back({.source = "a", .target = "b", .change = Change::added});
    diff.metadata.push_back({.field = "f", .before = "1", .after = "2"});
  }
  // 10 of 40 regions with their tensor, and 30 with a line that says that there is one.
  const std::string text = printed(diff, false);
  BOOST_TEST(lines(text) == 1 + 20 + 1 + 1 + 40 + 40 + 1 + 1 + 40 + 1);
  BOOST_TEST(text.find("  ~ r10  tensors: 0 added, 0 removed, 1 changed, 0 the same\n"
                       "      1 difference in it, which --all shows\n") != std::string::npos);
  BOOST_TEST(lines(printed(diff, true)) == 1 + 10'000 + 1 + 20'000 + 1 + 10'000);
}

BOOST_AUTO_TEST_CASE(long_values_are_cut_between_characters) {
  Diff diff;
  diff.metadata.push_back({.field = "f", .before = "\"" + std::string(58, 'x') + "\u00e9\u00e9\""});
  BOOST_TEST(printed(diff, false) == "metadata\n  - f  \"" + std::string(58, 'x') + "... (64 B)\n");
}

BOOST_AUTO_TEST_SUITE_END()
