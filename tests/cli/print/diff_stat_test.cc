#include "cli/print/diff_stat.h"

#include <string>

#include "boost_test.h"

using namespace thalia;
using namespace thalia::cli;

BOOST_AUTO_TEST_SUITE(diff_stat)

namespace {

std::string printed(const Diff& diff, std::size_t columns) {
  std::string text;
  Output out([&](std::string_view more) { text += more; });
  print_diff_stat(out, diff, columns);
  out.flush();
  return text;
}

TensorFacts facts(std::uint64_t elements) {
  return {.layout = {.shape = {elements}}};
}

Diff some_tensors() {
  Diff diff;
  diff.tensors.push_back({.name = "w",
                          .before = facts(1000),
                          .after = facts(3000),
                          .values = ValueDiff{.elements = 1000, .differing = 1000}});
  diff.tensors.push_back({.name = "few",
                          .before = facts(1000),
                          .after = facts(1000),
                          .values = ValueDiff{.elements = 1000, .differing = 1}});
  diff.tensors.push_back({.name = "old", .change = Change::removed, .before = facts(300)});
  return diff;
}

}  // namespace

BOOST_AUTO_TEST_CASE(bars_are_scaled_to_the_columns_and_never_to_nothing) {
  BOOST_TEST(printed(some_tensors(), 44) ==
             " w   | 3,000 ~~~~~~~~~~++++++++++++++++++++\n"
             " few |     1 ~\n"
             " old |   300 ---\n"
             " 2 tensors changed, 0 added, 1 removed; 1,001 numbers changed, 2,000 added, 300 "
             "removed\n");
  // However narrow, a bar has ten columns.
  BOOST_TEST(printed(some_tensors(), 3).starts_with(" w   | 3,000 ~~~++++++\n"));
}

BOOST_AUTO_TEST_CASE(what_no_number_tells_is_said) {
  Diff diff;
  diff.metadata.push_back({.field = "f", .before = "1"});
  TensorDiff tensor{.name = "t", .before = facts(2), .after = facts(2), .values = ValueDiff{}};
  tensor.after->layout.dtype = DType::f16;
  diff.tensors.push_back(tensor);
  BOOST_TEST(printed(diff, 80) ==
             " t | 0 f32 -> f16\n"
             " 1 tensor changed, 0 added, 0 removed; 0 numbers changed, 0 added, 0 removed\n"
             " and 1 difference beside tensors, which diff without --stat shows\n");
}

BOOST_AUTO_TEST_SUITE_END()
