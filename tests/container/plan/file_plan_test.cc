#include "container/plan/file_plan.h"

#include "boost_test.h"
#include "support/errors.h"

using namespace thalia;
using namespace thalia::test;
using container::FilePlan;

BOOST_AUTO_TEST_SUITE(file_plan)

BOOST_AUTO_TEST_CASE(more_than_a_reader_takes_is_refused_and_changes_nothing) {
  FilePlan plan;
  plan.limits.max_regions = 2;
  plan.limits.max_tensors = 1;
  plan.add_region({.name = "a"});
  plan.add_region({.name = "b"});
  BOOST_CHECK_EXCEPTION(plan.add_region({.name = "c"}), UsageError,
                        says(ErrorCode::bad_argument, "regions", "got 3", "2"));
  plan.add_tensor(0, {.name = "t", .shape = {0}}, {}, true);
  BOOST_CHECK_EXCEPTION(plan.add_tensor(1, {.name = "t", .shape = {0}}, {}, true), UsageError,
                        says(ErrorCode::bad_argument, "tensors", "got 2", "1"));
  plan.check_complete();
  BOOST_TEST(plan.regions.size() == 2u);
  BOOST_TEST(plan.tensors.size() == 1u);
  plan.limits.max_regions = 3;
  BOOST_TEST(plan.add_region({.name = "c"}) == 2u);
}

BOOST_AUTO_TEST_CASE(texts_that_no_reader_takes_are_refused) {
  FilePlan plan;
  plan.limits.max_json_bytes = 9;
  plan.limits.max_json_depth = 3;
  plan.set_metadata(R"({"a":[]} )");
  BOOST_CHECK_EXCEPTION(plan.set_metadata(R"({"a":[]}  )"), UsageError,
                        says(ErrorCode::bad_argument, "metadata", "got 10 bytes", "9 or less"));
  plan.add_region({.name = "a", .config_json = R"({"":[[]]})"});
  for (RegionSpec spec : {RegionSpec{.name = "b", .config_json = R"({"":[[[]]]})"},
                          RegionSpec{.name = "b", .metadata_json = R"({"":[[[]]]})"}}) {
    plan.limits.max_json_bytes = 10;
    BOOST_CHECK_EXCEPTION(plan.add_region(spec), UsageError,
                          says(ErrorCode::bad_argument, "_json: got 11 bytes", "10 or less"));
    plan.limits.max_json_bytes = 11;
    BOOST_CHECK_EXCEPTION(plan.add_region(spec), UsageError,
                          says(ErrorCode::bad_argument, "_json: got a depth of 4", "3 or less"));
  }
  BOOST_TEST(plan.metadata == R"({"a":[]} )");
  BOOST_TEST(plan.regions.size() == 1u);
}

// With what an append keeps, which is not declared.
BOOST_AUTO_TEST_CASE(the_whole_is_counted_too) {
  FilePlan plan;
  plan.limits.max_regions = 1;
  plan.add_region({.name = "a"});
  plan.regions.emplace_back();
  BOOST_CHECK_EXCEPTION(plan.check_complete(), UsageError,
                        says(ErrorCode::bad_argument, "regions", "got 2", "1"));
}

BOOST_AUTO_TEST_CASE(default_limits_are_a_readers) {
  const FilePlan plan;
  BOOST_TEST(plan.limits.max_regions == ReadLimits{}.max_regions);
  BOOST_TEST(plan.limits.max_tensors == ReadLimits{}.max_tensors);
}

BOOST_AUTO_TEST_CASE(each_of_many_names_is_taken_once) {
  container::FilePlan plan;
  const std::uint32_t first = plan.add_region({.name = "first"});
  const std::uint32_t second = plan.add_region({.name = "second"});
  const auto add = [&](std::uint32_t region, unsigned i) {
    return plan.add_tensor(region, {.name = std::to_string(i), .shape = {0}}, {}, false);
  };
  constexpr unsigned kMany = 5000;
  for (unsigned i = 0; i < kMany; ++i) BOOST_TEST(add(first, i) == i);
  for (unsigned i = 0; i < kMany; ++i) {
    BOOST_CHECK_THROW(add(first, i), UsageError);
    BOOST_TEST(plan.has_tensor(plan.regions[first], std::to_string(i)));
    BOOST_TEST(!plan.has_tensor(plan.regions[second], std::to_string(i)));
  }
  BOOST_TEST(plan.tensors.size() == kMany);
  BOOST_TEST(add(second, 0) == kMany);
}

BOOST_AUTO_TEST_SUITE_END()
